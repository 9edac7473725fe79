from __future__ import annotations

import gzip
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from auditor.errors import SourceError
from auditor.sources import download, network, pip_settings
from auditor.sources.cache import Cache, CacheConfig
from auditor.sources.open import open_source
from auditor.sources.selection import Limits
from auditor.sources.tree import Source

from .indexserver import Index, running_index
from .minitree import (
    NEXT_VERSION,
    PACKAGE,
    VERSION,
    sdist_bytes,
    wheel_bytes,
    write_files,
)

SDIST = f"vllm-{VERSION}.tar.gz"
WHEEL = f"vllm-{VERSION}-py3-none-any.whl"

Open = Callable[..., Source]


@pytest.fixture
def index() -> Iterator[Index]:
    with running_index() as running:
        yield running


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what pip says its settings are."""

    def say(**values: str) -> None:
        lines = [f"global.{key.replace('_', '-')}={value!r}\n" for key, value in values.items()]
        monkeypatch.setattr(pip_settings, "_pip_config_list", lambda: "".join(lines))

    return say


@pytest.fixture
def opening(
    tmp_path: Path,
    index: Index,
    pip: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Open]:
    """Opens a spec with the test's own index and cache; nothing may be printed."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr(network, "_FIRST_PAUSE", 0.0)
    pip(index_url=index.url)

    def opened(spec: str | None, **options: object) -> Source:
        cache = options.pop("cache", CacheConfig.at(tmp_path / "cache"))
        assert isinstance(cache, CacheConfig)
        return open_source(spec, cwd=tmp_path, cache=cache, **options)  # type: ignore[arg-type]

    yield opened
    assert capfd.readouterr() == ("", "")


def cached(tmp_path: Path) -> list[str]:
    folder = tmp_path / "cache"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_version_is_fetched_once_and_then_needs_no_network(index: Index, opening: Open) -> None:
    index.add(SDIST, sdist_bytes())
    index.add(WHEEL, wheel_bytes())
    first = opening(VERSION)
    assert (first.kind, first.version, first.origin) == ("index", VERSION, SDIST)
    assert first.headline == "vllm 0.30.0 (sdist from the package index): given by --vllm"
    assert first.tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]
    assert not first.problems
    assert not first.notes
    asked = list(index.asked)
    assert f"/files/{WHEEL}" not in asked
    for spec in (VERSION, f"v{VERSION}", f" {VERSION}"):
        again = opening(spec)
        assert again.origin == SDIST
        assert again.tree.files() == first.tree.files()
        assert again.tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]
    assert index.asked == asked


def test_an_html_index_is_read_as_a_json_one(index: Index, opening: Open) -> None:
    index.add(SDIST, sdist_bytes())
    index.as_html()
    source = opening(VERSION)
    assert source.version == VERSION
    assert not source.problems


def test_without_a_cache_everything_stays_in_memory(
    index: Index, opening: Open, tmp_path: Path
) -> None:
    index.add(SDIST, sdist_bytes())
    for _ in range(2):
        assert opening(VERSION, cache=CacheConfig.off()).version == VERSION
    assert index.asked.count(f"/files/{SDIST}") == 2
    assert not (tmp_path / "cache").exists()


def test_without_an_sdist_a_wheel_is_taken(index: Index, opening: Open) -> None:
    index.add(WHEEL, wheel_bytes())
    source = opening(VERSION)
    assert source.origin == WHEEL
    assert "(wheel from the package index)" in source.headline
    assert opening("latest").origin == WHEEL


def test_the_latest_is_final_standing_and_has_an_sdist(index: Index, opening: Open) -> None:
    for version, yanked in (("0.9.2", False), ("0.30.0", False), ("0.31.0", "broken")):
        index.add(f"vllm-{version}.tar.gz", sdist_bytes(version), yanked=yanked)
    index.add("vllm-0.32.0rc1.tar.gz", sdist_bytes("0.32.0rc1"))
    index.add("vllm-0.33.0-py3-none-any.whl", wheel_bytes("0.33.0"))
    assert opening("latest").version == "0.30.0"
    index.add("vllm-0.30.1.tar.gz", sdist_bytes("0.30.1"))
    assert opening("latest").version == "0.30.1"


def test_the_latest_that_is_in_the_cache_is_not_fetched_again(index: Index, opening: Open) -> None:
    index.add(SDIST, sdist_bytes())
    opening(VERSION)
    opening("latest")
    assert index.asked.count(f"/files/{SDIST}") == 1


@pytest.mark.parametrize("version", ["0.32.0rc1", "0.32.0.dev3", "0.32.0+cu129"])
def test_a_pre_release_is_taken_when_it_is_named(index: Index, opening: Open, version: str) -> None:
    index.add(f"vllm-{version}.tar.gz", sdist_bytes(version))
    index.add(SDIST, sdist_bytes())
    assert opening(version).version == version


def test_a_local_build_is_taken_for_its_public_version(index: Index, opening: Open) -> None:
    index.add("vllm-0.32.0+cu129.tar.gz", sdist_bytes("0.32.0+cu129"))
    assert opening("0.32.0").version == "0.32.0+cu129"


def test_a_yanked_release_is_taken_when_it_is_named_with_a_note(
    index: Index, opening: Open
) -> None:
    index.add(SDIST, sdist_bytes(), yanked="does not start")
    for _ in range(2):
        source = opening(VERSION)
        assert source.notes == [f"{SDIST} was yanked from the package index: does not start"]


def test_a_version_that_is_not_there_is_an_error_with_the_nearest(
    index: Index, opening: Open, tmp_path: Path
) -> None:
    for version in ("0.29.0", "0.30.0", "0.31.0", "0.31.1rc1"):
        index.add(f"vllm-{version}.tar.gz", sdist_bytes(version))
    for spec, told in (
        ("0.30.99", "the index has 0.30.0, 0.31.0"),
        ("0.99", "the index has 0.30.0, 0.31.0"),
        ("0.1", "the index has 0.29.0, 0.30.0"),
    ):
        with pytest.raises(SourceError, match=told):
            opening(spec)
    assert cached(tmp_path) == []


def test_a_wrong_hash_is_refused_and_nothing_is_kept(
    index: Index, opening: Open, tmp_path: Path
) -> None:
    index.add(SDIST, sdist_bytes(), sha256="0" * 64)
    with pytest.raises(SourceError, match="not the one the package index states") as raised:
        opening(VERSION)
    assert "refused" in raised.value.message
    assert raised.value.next_step
    assert cached(tmp_path) == []


def test_an_index_without_hashes_is_reported_every_time(index: Index, opening: Open) -> None:
    index.add(SDIST, sdist_bytes(), sha256=None)
    for _ in range(2):
        (problem,) = opening(VERSION).problems
        assert problem.path == SDIST
        assert "could not be checked" in problem.reason


def test_a_damaged_archive_with_the_right_hash_is_refused(
    index: Index, opening: Open, tmp_path: Path
) -> None:
    index.add(SDIST, sdist_bytes()[:-200])
    with pytest.raises(SourceError, match="truncated"):
        opening(VERSION)
    assert cached(tmp_path) == []


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "grow", "index"])
@pytest.mark.parametrize("what", ["trees", "releases"])
def test_a_damaged_cache_is_discarded_and_fetched_again_with_a_note(
    index: Index, opening: Open, tmp_path: Path, damage: str, what: str
) -> None:
    index.add(SDIST, sdist_bytes())
    opening(VERSION)
    (entry,) = (tmp_path / "cache" / what).iterdir()
    good = entry.read_bytes()
    bad = {
        "flip": good[:-3] + bytes([good[-3] ^ 0x80]) + good[-2:],
        "cut": good[: len(good) // 2],
        "empty": b"",
        "grow": good + b"x",
        "index": good[:50] + bytes([good[50] ^ 1]) + good[51:],
    }[damage]
    if what == "releases" and damage in ("flip", "index"):
        bad = b"\xff" + good
    entry.write_bytes(bad)
    source = opening(VERSION)
    assert len(source.notes) == 1
    assert "damaged" in source.notes[0]
    assert source.tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]
    assert entry.read_bytes() == good
    assert not opening(VERSION).notes


def test_a_deleted_cache_is_filled_again(index: Index, opening: Open, tmp_path: Path) -> None:
    index.add(SDIST, sdist_bytes())
    opening(VERSION)
    (entry,) = (tmp_path / "cache/trees").iterdir()
    entry.unlink()
    assert opening(VERSION).version == VERSION
    assert entry.exists()


def test_a_cache_that_cannot_be_written_is_done_without(
    index: Index, opening: Open, tmp_path: Path
) -> None:
    index.add(SDIST, sdist_bytes())
    (tmp_path / "file").write_bytes(b"")
    source = opening(VERSION, cache=CacheConfig.at(tmp_path / "file/cache"))
    assert source.version == VERSION
    (note,) = source.notes
    assert "cannot be written" in note


def test_many_runs_at_once_all_succeed_and_leave_one_cache(
    index: Index, opening: Open, tmp_path: Path
) -> None:
    index.add(SDIST, sdist_bytes())
    found: list[Source] = []
    threads = [threading.Thread(target=lambda: found.append(opening(VERSION))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(s.tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"] for s in found)
    assert len(cached(tmp_path)) == 2


RUN = """
import sys
from pathlib import Path
from auditor.sources.cache import CacheConfig
from auditor.sources.open import open_source
from auditor.sources.selection import Limits
source = open_source(sys.argv[1], cwd=Path.cwd(), cache=CacheConfig.at(Path(sys.argv[2])))
print(source.version, len(source.tree.read("vllm/envs.py")), source.problems, source.notes)
"""


@pytest.mark.parametrize("where", ["index", "find-links"])
def test_two_processes_at_once_read_pip_s_own_settings(
    index: Index, tmp_path: Path, where: str
) -> None:
    index.add(SDIST, sdist_bytes())
    links = write_files(tmp_path / "links", {SDIST: sdist_bytes(), "torch-1.whl": b""})
    environment = {name: v for name, v in os.environ.items() if not name.startswith("PIP_")} | {
        "PIP_CONFIG_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTHONWARNINGS": "error",
    }
    if where == "index":
        environment |= {"PIP_INDEX_URL": index.url}
    else:
        environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"/nowhere {links}"}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, VERSION, str(tmp_path / "cache")],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    size = len(PACKAGE["vllm/envs.py"])
    for run in runs:
        assert run.communicate(timeout=120) == (f"{VERSION} {size} () []\n", "")
    assert not [name for name in cached(tmp_path) if ".writing" in name]
    assert sorted(path.name for path in links.iterdir()) == ["torch-1.whl", SDIST]


def test_folders_that_hold_no_vllm_are_passed_over_silently(
    index: Index, opening: Open, pip: Callable[..., None], tmp_path: Path
) -> None:
    index.add(SDIST, sdist_bytes())
    write_files(
        tmp_path, {"simple/torch/index.html": b"", "wheels/torch-2.0-py3-none-any.whl": b""}
    )
    pip(
        index_url=index.url,
        extra_index_url=f"file://{tmp_path}/simple file:///nowhere/simple {index.address}/other",
        find_links=f"{tmp_path}/wheels /nowhere",
    )
    assert opening("latest").version == VERSION


def test_the_newest_of_all_indexes_and_folders_is_the_latest(
    index: Index, opening: Open, pip: Callable[..., None], tmp_path: Path
) -> None:
    index.add(SDIST, sdist_bytes())
    newer = f"vllm-{NEXT_VERSION}.tar.gz"
    write_files(tmp_path, {f"links/{newer}": sdist_bytes(NEXT_VERSION)})
    pip(index_url=index.url, find_links=f"{tmp_path}/links")
    source = opening("latest")
    assert (source.version, source.origin, source.problems) == (NEXT_VERSION, newer, ())
    pip(no_index="1", index_url=index.url, find_links=f"{tmp_path}/links")
    with pytest.raises(SourceError, match=rf"the index has {NEXT_VERSION}"):
        opening(VERSION)


def test_no_index_and_no_folders_is_an_error(opening: Open, pip: Callable[..., None]) -> None:
    pip(no_index="1")
    with pytest.raises(SourceError, match="none of the package indexes"):
        opening(VERSION)


def test_a_server_that_fails_for_a_moment_is_asked_again(index: Index, opening: Open) -> None:
    index.add(SDIST, sdist_bytes())
    index.failing = {"/simple/vllm/": 2, f"/files/{SDIST}": 2}
    assert opening(VERSION).version == VERSION


def test_retries_are_those_of_pip(index: Index, opening: Open, pip: Callable[..., None]) -> None:
    index.add(SDIST, sdist_bytes())
    index.failing = {"/simple/vllm/": 9}
    pip(index_url=index.url, retries="1")
    with pytest.raises(SourceError, match=r"overloaded or broken \(HTTP 503\)"):
        opening(VERSION)
    assert len(index.asked) == 2


@pytest.mark.parametrize(
    ("status", "kind", "content", "told"),
    [
        (401, "text/html", b"", "wants credentials"),
        (403, "text/html", b"", "refuses access"),
        (200, "application/zip", b"PK", "not that of an index"),
        (200, "application/vnd.pypi.simple.v1+json", b"{", "not that of an index"),
        (200, "application/vnd.pypi.simple.v1+json", b"[]", "not that of an index"),
    ],
)
def test_a_page_that_is_no_index_is_an_error(
    index: Index, opening: Open, status: int, kind: str, content: bytes, told: str
) -> None:
    index.pages["/simple/vllm/"] = (status, kind, content)
    for spec in (VERSION, "latest"):
        with pytest.raises(SourceError, match=told) as raised:
            opening(spec)
        assert "127.0.0.1" not in raised.value.message


def test_an_index_without_vllm_is_an_error(opening: Open) -> None:
    with pytest.raises(SourceError, match="none of the package indexes"):
        opening("latest")


def test_an_archive_that_is_gone_is_an_error(index: Index, opening: Open) -> None:
    index.add(SDIST, sdist_bytes())
    del index.pages[f"/files/{SDIST}"]
    with pytest.raises(SourceError, match=r"cannot be fetched.*HTTP 404"):
        opening(VERSION)


def test_a_redirect_is_followed(index: Index, opening: Open) -> None:
    index.add(SDIST, sdist_bytes())
    index.pages["/moved/x"] = index.pages[f"/files/{SDIST}"]
    index.pages[f"/files/{SDIST}"] = (302, "text/plain", b"/moved/x")
    assert opening(VERSION).version == VERSION


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def test_without_network_the_latest_is_an_error_naming_what_is_cached(
    index: Index, opening: Open, pip: Callable[..., None]
) -> None:
    for version in ("0.9.2", "0.30.0"):
        index.add(f"vllm-{version}.tar.gz", sdist_bytes(version))
        opening(version)
    pip(index_url=f"http://127.0.0.1:{closed_port()}/simple", retries="0")
    with pytest.raises(SourceError, match="no connection could be made") as raised:
        opening("latest")
    assert raised.value.next_step.endswith("In the cache: 0.9.2, 0.30.0.")
    assert "127.0.0.1" not in raised.value.message
    with pytest.raises(SourceError, match=r"vLLM 0\.31\.0 was not found: the index: no connection"):
        opening("0.31.0")
    assert opening("0.30.0").version == "0.30.0"


def test_a_name_that_cannot_be_resolved_is_told_as_such(
    opening: Open, pip: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(*_: object, **__: object) -> object:
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    pip(index_url="https://index.invalid/simple", retries="0")
    with pytest.raises(SourceError, match="cannot be resolved: no network"):
        opening("latest")


def test_a_proxy_that_is_not_there_is_told_as_such(
    index: Index, opening: Open, pip: Callable[..., None]
) -> None:
    pip(
        index_url="https://index.invalid/simple",
        proxy=f"http://127.0.0.1:{closed_port()}",
        retries="0",
    )
    with pytest.raises(SourceError, match="through the proxy"):
        opening("latest")


def test_a_proxy_that_refuses_is_told_as_such(
    index: Index, opening: Open, pip: Callable[..., None]
) -> None:
    pip(index_url="https://index.invalid/simple", proxy=index.address, retries="0")
    with pytest.raises(SourceError, match="proxy refused"):
        opening("latest")


def test_a_server_that_speaks_no_tls_is_told_as_such(
    index: Index, opening: Open, pip: Callable[..., None]
) -> None:
    pip(index_url=index.url.replace("http:", "https:"), retries="0")
    with pytest.raises(SourceError, match="no TLS connection"):
        opening("latest")


def test_a_silent_server_is_told_as_such(opening: Open, pip: Callable[..., None]) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        pip(index_url=f"http://127.0.0.1:{port}/simple", retries="0", timeout="0.2")
        with pytest.raises(SourceError, match=r"no answer in 0\.2 s"):
            opening("latest")


def test_plain_http_needs_a_trusted_host(
    index: Index, opening: Open, pip: Callable[..., None]
) -> None:
    pip(index_url="http://index.invalid/simple", retries="0")
    with pytest.raises(SourceError, match="plain HTTP and no trusted-host"):
        opening("latest")


def test_a_trusted_host_is_reached_through_the_proxy(
    index: Index, opening: Open, pip: Callable[..., None]
) -> None:
    pip(
        index_url="http://index.invalid/simple",
        trusted_host="index.invalid",
        proxy=index.address,
        retries="0",
    )
    with pytest.raises(SourceError, match="none of the package indexes"):
        opening("latest")
    assert index.asked == ["http://index.invalid/simple/vllm/"]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"cert": "/nowhere.pem"}, "cert or client-cert setting cannot be used"),
        ({"client_cert": "/nowhere.pem"}, "cert or client-cert setting cannot be used"),
        ({"proxy": "gopher://x"}, "the proxy or the trusted-host setting"),
        ({"index_url": "http://[x"}, "the index:"),
    ],
)
def test_a_setting_that_cannot_be_used_is_an_error(
    index: Index, opening: Open, pip: Callable[..., None], values: dict[str, str], told: str
) -> None:
    pip(**({"index_url": index.url} | values))
    with pytest.raises(SourceError, match=told):
        opening("latest")


def test_progress_is_told_of_a_download_and_only_of_one(index: Index, opening: Open) -> None:
    events: list[object] = []

    class Recorder:
        def started(self, name: str, total: int | None) -> None:
            events.append((name, total))

        def advanced(self, received: int) -> None:
            events.append(received)

        def finished(self) -> None:
            events.append("finished")

    content = sdist_bytes()
    index.add(SDIST, content)
    opening(VERSION, progress=Recorder())
    assert events == [(SDIST, len(content)), len(content), "finished"]
    opening(VERSION, progress=Recorder())
    assert len(events) == 3


def test_a_cache_from_another_release_of_this_tool_is_no_error(
    index: Index, opening: Open, tmp_path: Path
) -> None:
    index.add(SDIST, sdist_bytes())
    write_files(
        tmp_path / "cache/releases",
        {f"{VERSION}.json": json.dumps({"other": 1}).encode(), "x.json": b"", "y": b""},
    )
    assert opening(VERSION).version == VERSION
    assert Cache(CacheConfig.at(tmp_path / "cache")).names("releases")


def damage(tmp_path: Path) -> Path:
    """Change a file in the one bundle of the cache, in a way that its size and time do not show."""
    (entry,) = (tmp_path / "cache/trees").iterdir()
    times = entry.stat()
    content = PACKAGE["vllm/envs.py"]
    entry.write_bytes(entry.read_bytes().replace(content, content[::-1]))
    os.utime(entry, ns=(times.st_atime_ns, times.st_mtime_ns))
    return entry


@pytest.mark.parametrize("spec", [VERSION, "latest"])
def test_damage_found_when_a_file_is_read_is_fetched_again_with_a_note(
    index: Index, opening: Open, tmp_path: Path, spec: str
) -> None:
    index.add(SDIST, sdist_bytes())
    opening(VERSION)
    damage(tmp_path)
    source = opening(spec)
    assert not source.notes
    assert source.tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]
    assert source.notes == ["a damaged entry of the cache was discarded"]
    assert index.asked.count(f"/files/{SDIST}") == 2
    again = opening(spec)
    assert again.tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]
    assert not again.notes


def test_damage_without_network_is_an_error_and_gone_as_soon_as_there_is_one(
    index: Index, opening: Open, pip: Callable[..., None], tmp_path: Path
) -> None:
    index.add(SDIST, sdist_bytes())
    opening(VERSION)
    entry = damage(tmp_path)
    pip(index_url=f"http://127.0.0.1:{closed_port()}/simple", retries="0")
    source = opening(VERSION)
    for _ in range(2):
        with pytest.raises(SourceError, match="no connection could be made"):
            source.tree.read("vllm/envs.py")
    assert source.tree.read("vllm/__init__.py") == PACKAGE["vllm/__init__.py"]
    assert not entry.exists()
    pip(index_url=index.url)
    assert opening(VERSION).tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]


@pytest.mark.parametrize(
    ("stated", "shown"), [(True, ""), ("bad\n\x1b[31mbuild", ": bad \\x1b[31mbuild")]
)
def test_whatever_an_index_gives_as_the_reason_for_a_yank_is_one_line(
    index: Index, opening: Open, stated: bool | str, shown: str
) -> None:
    index.add(SDIST, sdist_bytes(), yanked=stated)
    for _ in range(2):
        assert opening(VERSION).notes == [f"{SDIST} was yanked from the package index{shown}"]


def test_a_yank_and_a_base_address_of_an_html_page_count(index: Index, opening: Open) -> None:
    index.add(SDIST, sdist_bytes(), yanked="why")
    index.as_html(base=f'<base href="{index.address}/a/b/">')
    assert opening(VERSION).notes == [f"{SDIST} was yanked from the package index: why"]


@pytest.mark.parametrize("stated", ["../../x", "", "0" * 63, "\0"])
def test_a_hash_that_is_none_is_refused_and_names_no_file(
    index: Index, opening: Open, tmp_path: Path, stated: str
) -> None:
    index.add(SDIST, sdist_bytes(), sha256=stated)
    bystander = write_files(tmp_path, {"x.tree": b"keep"}) / "x.tree"
    with pytest.raises(SourceError, match="not the one the package index states"):
        opening(VERSION)
    assert bystander.read_bytes() == b"keep"
    assert cached(tmp_path) == []


def test_a_hash_in_capitals_is_the_same_hash(index: Index, opening: Open) -> None:
    index.add(SDIST, sdist_bytes(), sha256=hashlib.sha256(sdist_bytes()).hexdigest().upper())
    assert not opening(VERSION).problems


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("text/html", b"<![foo["),
        ("text/html; charset=base64", b"<a href=x>"),
        ("text/html; charset=utf-16", b"\xd8"),
        ("text/html", b'<a href="http://[/vllm-0.30.0.tar.gz">'),
        ("application/vnd.pypi.simple.v1+json", b"[" * 100_000),
        ("application/vnd.pypi.simple.v1+json", b'{"files": [{"url": 3}]}'),
        (
            "application/vnd.pypi.simple.v1+json",
            b'{"files": [{"url": "vllm-0.30.0.tar.gz", "hashes": {"sha256": 3}}]}',
        ),
        (
            "application/vnd.pypi.simple.v1+json",
            b'{"files": [{"url": "vllm-0.30.0.tar.gz", "hashes": "x"}]}',
        ),
    ],
)
def test_a_page_made_to_break_the_parser_is_no_traceback(
    index: Index, opening: Open, kind: str, content: bytes
) -> None:
    index.page(content, kind)
    with pytest.raises(SourceError, match=r"not that of an index|none of the package indexes"):
        opening(VERSION)


@pytest.mark.parametrize(
    "link",
    ["file://{folder}/vllm-0.30.0.tar.gz", "ftp://x.invalid/vllm-0.30.0.tar.gz",
     "git+https://x.invalid/v#egg=vllm-0.30.0"],
)  # fmt: skip
@pytest.mark.parametrize("base", ["", '<base href="file:///">'])
def test_a_server_cannot_name_files_of_this_machine_or_other_protocols(
    index: Index, opening: Open, tmp_path: Path, link: str, base: str
) -> None:
    write_files(tmp_path, {SDIST: sdist_bytes()})
    index.page(f"{base}<a href='{link.format(folder=tmp_path)}'>x</a>".encode())
    with pytest.raises(SourceError, match="none of the package indexes"):
        opening(VERSION)


@pytest.mark.parametrize("where", ["page", "archive"])
def test_a_redirect_to_a_file_of_this_machine_is_refused(
    index: Index, opening: Open, tmp_path: Path, where: str
) -> None:
    write_files(tmp_path, {SDIST: sdist_bytes(), "x.html": f'<a href="{SDIST}">x</a>'.encode()})
    index.add(SDIST, sdist_bytes())
    if where == "page":
        index.pages["/simple/vllm/"] = (302, "", f"file://{tmp_path}/x.html".encode())
    else:
        index.pages[f"/files/{SDIST}"] = (302, "", f"file://{tmp_path}/{SDIST}".encode())
    with pytest.raises(SourceError, match="redirects to something that is not HTTP"):
        opening(VERSION)


def test_a_redirect_of_the_page_is_followed_and_its_links_are_relative_to_the_new_place(
    index: Index, opening: Open
) -> None:
    index.add(SDIST, sdist_bytes())
    index.pages["/other/deep/vllm/"] = index.pages["/simple/vllm/"]
    index.pages["/simple/vllm/"] = (301, "", b"/other/deep/vllm/")
    index.pages[f"/other/files/{SDIST}"] = index.pages.pop(f"/files/{SDIST}")
    assert opening(VERSION).version == VERSION


def test_a_compressed_answer_is_read(index: Index, opening: Open) -> None:
    index.add(SDIST, sdist_bytes())
    status, kind, content = index.pages["/simple/vllm/"]
    index.pages["/simple/vllm/"] = (status, kind, gzip.compress(content))
    index.headers["/simple/vllm/"] = {"Content-Encoding": "gzip"}
    assert opening(VERSION).version == VERSION


@pytest.mark.parametrize("twice", [True, False])
@pytest.mark.parametrize("sha256", ["right", None])
def test_an_archive_that_is_called_compressed_is_read_whether_it_is_so_once_or_twice(
    index: Index, opening: Open, twice: bool, sha256: str | None
) -> None:
    content = sdist_bytes()
    index.add(SDIST, content, sha256=sha256)
    sent = gzip.compress(content) if twice else content
    index.pages[f"/files/{SDIST}"] = (200, "application/gzip", sent)
    index.headers[f"/files/{SDIST}"] = {"Content-Encoding": "gzip"}
    assert opening(VERSION).tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]


def test_an_archive_without_end_is_refused(
    index: Index, opening: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    index.add(SDIST, sdist_bytes())
    monkeypatch.setattr(download, "DEFAULT_LIMITS", Limits(total=100))
    with pytest.raises(SourceError, match="is larger than 0 MiB, which no vLLM release is"):
        opening(VERSION)
    assert cached(tmp_path) == []


def test_an_index_can_be_the_path_of_a_folder(
    opening: Open, pip: Callable[..., None], tmp_path: Path
) -> None:
    write_files(
        tmp_path,
        {
            f"simple/vllm/{SDIST}": sdist_bytes(),
            "simple/vllm/index.html": f'<a href="{SDIST}">x</a>'.encode(),
        },
    )
    pip(index_url=str(tmp_path / "simple"), extra_index_url="/nowhere/simple")
    assert opening("latest").version == VERSION


def test_a_find_links_page_can_state_hashes(
    index: Index, opening: Open, pip: Callable[..., None], tmp_path: Path
) -> None:
    digest = hashlib.sha256(sdist_bytes()).hexdigest()
    newer = f"vllm-{NEXT_VERSION}.tar.gz"
    files = {SDIST: sdist_bytes(), newer: sdist_bytes(NEXT_VERSION)}
    page = f'<a href="{SDIST}#sha256={digest}">x</a><a href="{newer}#sha256={digest}">y</a>'
    write_files(tmp_path / "links", {**files, "index.html": page.encode()})
    index.pages["/links.html"] = (200, "text/html", page.encode())
    index.pages |= {f"/{name}": (200, "", content) for name, content in files.items()}
    for place in (f"{tmp_path}/links/index.html", f"{index.address}/links.html"):
        pip(no_index="1", find_links=place)
        source = opening(VERSION, cache=CacheConfig.off())
        assert not source.problems
        with pytest.raises(SourceError, match="not the one the package index states"):
            opening(NEXT_VERSION, cache=CacheConfig.off())


def test_only_files_of_a_find_links_folder_are_archives(
    opening: Open, pip: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "links" / SDIST).mkdir(parents=True)
    os.mkfifo(tmp_path / "links" / f"vllm-{NEXT_VERSION}.tar.gz")
    pip(no_index="1", find_links=f"{tmp_path}/links")
    with pytest.raises(SourceError, match="none of the package indexes"):
        opening("latest")


SECRET = "s3cr%40t"


@pytest.mark.parametrize("fault", ["none", "page", "archive", "refused", "redirect", "broken"])
@pytest.mark.parametrize("setting", ["index_url", "extra_index_url", "find_links", "netrc"])
def test_credentials_are_sent_and_never_shown(
    index: Index,
    opening: Open,
    pip: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    fault: str,
) -> None:
    host = index.address.removeprefix("http://")
    path = "simple/vllm/" if setting == "find_links" else "simple"
    if setting == "netrc":
        write_files(tmp_path, {"netrc": b"machine 127.0.0.1 login user password s3cr@t\n"})
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        pip(index_url=f"http://{host}/{path}", retries="0")
    else:
        pip(**{"no_index": "1"} if setting == "find_links" else {}, retries="0",
            **{setting: f"http://user:{SECRET}@{host}/{path}"},
            **{"index_url": index.address} if setting == "extra_index_url" else {})  # fmt: skip
    index.add(SDIST, sdist_bytes())
    if fault == "page":
        index.page(b"<![foo[")
    elif fault == "archive":
        del index.pages[f"/files/{SDIST}"]
    elif fault == "refused":
        index.pages["/simple/vllm/"] = (401, "text/html", b"")
    elif fault == "redirect":
        index.pages["/simple/vllm/"] = (302, "", f"file://user:{SECRET}@x/".encode())
    elif fault == "broken":
        index.add(SDIST, b"no archive")
    told = ""
    try:
        source = opening("latest")
    except SourceError as error:
        told = error.message
    else:
        assert fault == "none"
        told = f"{source.headline} {source.notes} {source.problems}"
    assert index.credentials["/simple/vllm/"].startswith("Basic ")
    for part in ("s3cr", "user:", "127.0.0.1"):
        assert part not in told


def test_a_trusted_host_that_is_none_is_an_error(
    index: Index, opening: Open, pip: Callable[..., None]
) -> None:
    pip(index_url=index.url, trusted_host="x:99999")
    with pytest.raises(SourceError, match="trusted-host setting"):
        opening("latest")


@pytest.mark.network
@pytest.mark.slow
def test_a_real_release_is_fetched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cache = CacheConfig.at(tmp_path / "cache")
    first = open_source("0.30.0", cwd=tmp_path, cache=cache)
    assert first.version == "0.30.0"
    assert "vllm/model_executor/models/registry.py" in first.tree.files()
    assert not first.problems

    def no_network(*_: object) -> object:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", no_network)
    second = open_source("0.30.0", cwd=tmp_path, cache=cache)
    assert second.tree.files() == first.tree.files()
    assert second.tree.read("vllm/envs.py") == first.tree.read("vllm/envs.py")
    assert capfd.readouterr() == ("", "")
