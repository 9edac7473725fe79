from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable

import pytest

from auditor.errors import SourceError
from auditor.sources.archive import ArchiveContents, read_archive
from auditor.sources.limits import Limits

from .minitree import (
    CHECKOUT,
    PACKAGE,
    link_member,
    sdist_bytes,
    sdist_files,
    stream,
    tar_bytes,
    wheel_bytes,
    zip_bytes,
)

TOP = "vllm-0.30.0"


def read_tar(*extra: tarfile.TarInfo | tuple[str, bytes]) -> ArchiveContents:
    content = tar_bytes([*sdist_files().items(), *extra])
    return read_archive(stream(content), f"{TOP}.tar.gz")


def read_zip(*extra: tuple[str, bytes]) -> ArchiveContents:
    content = zip_bytes([*sdist_files().items(), *extra])
    return read_archive(stream(content), f"{TOP}.zip")


def reasons(contents: ArchiveContents) -> dict[str, str]:
    assert list(contents.problems) == sorted(contents.problems)
    return {problem.path: problem.reason for problem in contents.problems}


@pytest.mark.parametrize("mode", ["gz", "bz2", "xz", ""])
def test_an_sdist_gives_the_files_below_its_top_folder(mode: str) -> None:
    contents = read_archive(stream(sdist_bytes(mode=mode)), "vllm.tar")
    listed = {name for name in CHECKOUT if not name.startswith(("tests/", "docs/"))}
    assert set(contents.members) == listed | {"PKG-INFO"}
    assert contents.members["vllm/envs.py"] == PACKAGE["vllm/envs.py"]
    assert contents.kind == "sdist"
    assert not contents.problems


def test_a_zipped_sdist_gives_the_same_as_a_tar() -> None:
    assert read_zip() == read_tar()


def test_a_wheel_gives_the_package_and_its_metadata() -> None:
    contents = read_archive(stream(wheel_bytes()), "vllm-0.30.0-py3-none-any.whl")
    assert contents.kind == "wheel"
    assert "vllm-0.30.0.dist-info/METADATA" in contents.members
    assert contents.members["vllm/envs.py"] == PACKAGE["vllm/envs.py"]


def test_an_archive_without_a_top_folder_is_read_too() -> None:
    content = tar_bytes([(f"./{name}", data) for name, data in CHECKOUT.items()])
    contents = read_archive(stream(content), "x.tar.gz")
    assert contents.members["vllm/envs.py"] == PACKAGE["vllm/envs.py"]


@pytest.mark.parametrize("read", [read_tar, read_zip])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../evil.py", "(..)"),
        (f"{TOP}/vllm/../../../evil.py", "(..)"),
        ("/etc/evil.py", "absolute"),
        ("C:\\evil.py", "absolute"),
        (f"{TOP}/vllm/a\\b.py", "backslash"),
        (f"{TOP}/vllm/a\nb.py", "control"),
    ],
)
def test_an_unsafe_name_is_left_out_and_the_rest_is_usable(
    read: Callable[..., ArchiveContents], name: str, reason: str
) -> None:
    contents = read((name, b"evil"))
    assert b"evil" not in contents.members.values()
    (found,) = reasons(contents).values()
    assert reason in found
    assert contents.members["vllm/envs.py"] == PACKAGE["vllm/envs.py"]


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a character device"),
        (tarfile.BLKTYPE, "a block device"),
        (tarfile.FIFOTYPE, "a named pipe"),
        (tarfile.GNUTYPE_SPARSE, "a sparse file"),
        (b"Z", "unknown kind"),
    ],
)
def test_a_tar_member_that_is_no_file_is_not_followed(kind: bytes, what: str) -> None:
    contents = read_tar(
        link_member(f"{TOP}/vllm/z.py", "/etc/passwd", kind),
        link_member(f"{TOP}/docs/z.py", "/etc/passwd", kind),
    )
    assert "vllm/z.py" not in contents.members
    assert list(reasons(contents)) == ["vllm/z.py"]
    assert what in reasons(contents)["vllm/z.py"]


def test_a_link_does_not_replace_a_file_of_the_same_name() -> None:
    contents = read_tar(link_member(f"{TOP}/vllm/envs.py", "__init__.py"))
    assert contents.members["vllm/envs.py"] == PACKAGE["vllm/envs.py"]
    assert "vllm/envs.py" in reasons(contents)


def test_a_link_in_a_zip_is_not_followed() -> None:
    contents = read_zip((f"{TOP}/vllm/z.py", b"-> /etc/passwd"))
    assert "vllm/z.py" not in contents.members
    assert "symbolic link" in reasons(contents)["vllm/z.py"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("read", [read_tar, read_zip])
def test_of_two_members_with_one_name_the_last_is_read(
    read: Callable[..., ArchiveContents],
) -> None:
    name = f"{TOP}/vllm/envs.py"
    for _ in range(2):
        contents = read((name, b"second"), (f"{TOP}/./vllm//envs.py", b"third"))
        assert contents.members["vllm/envs.py"] == b"third"
        assert "more than one" in reasons(contents)["vllm/envs.py"]


def test_a_name_that_is_not_utf8_is_left_out() -> None:
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer, mode="w:gz", format=tarfile.GNU_FORMAT, encoding="latin-1"
    ) as archive:
        for name in (*sdist_files(), f"{TOP}/vllm/caf\u00e9.py"):
            archive.addfile(tarfile.TarInfo(name))
    contents = read_archive(stream(buffer.getvalue()), "x.tar.gz")
    assert reasons(contents) == {"vllm/caf\\xe9.py": "its name is not UTF-8"}


def test_a_compiled_file_is_listed_by_name_only() -> None:
    contents = read_tar((f"{TOP}/vllm/_C.abi3.so", b"\x7fELF"))
    assert contents.members["vllm/_C.abi3.so"] is None


def test_only_one_of_two_packages_is_read() -> None:
    contents = read_tar(("another/vllm/__init__.py", b""), ("another/vllm/x.py", b""))
    assert "vllm/x.py" not in contents.members
    assert list(reasons(contents)) == ["another/vllm/__init__.py"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (b"hello, world" * 100, "not an archive"),
        (b"\x7fELF" + bytes(600), "not an archive"),
        (b"PK\x03\x04" + bytes(100), "damaged zip"),
        (b"\x1f\x8b\x08" + bytes(100), "corrupt gzip"),
        (zip_bytes([]), "no file that belongs"),
        (tar_bytes([]), "no file that belongs"),
        (tar_bytes([], ""), "no file that belongs"),
        (zip_bytes([("other/__init__.py", b"")]), "holds no vLLM"),
        (tar_bytes([("a/b/c/vllm/__init__.py", b""), ("x", b"")]), "holds no vLLM"),
        (tar_bytes([("v/vllm/envs.py", b"")]), "holds no vLLM"),
    ],
)
def test_what_is_no_vllm_archive_is_refused_with_a_next_step(content: bytes, what: str) -> None:
    with pytest.raises(SourceError, match=what) as raised:
        read_archive(stream(content), "vllm-1.tar.gz")
    assert raised.value.where == "vllm-1.tar.gz"
    assert raised.value.next_step


def test_a_zip_cut_off_anywhere_is_refused() -> None:
    content = wheel_bytes()
    for length in range(1, len(content), len(content) // 60):
        with pytest.raises(SourceError):
            read_archive(stream(content[:length]), "vllm-1.whl")


def test_a_flipped_byte_in_a_zip_is_never_other_contents() -> None:
    content = wheel_bytes()
    whole = read_archive(stream(content), "x.whl").members
    for place in range(0, len(content), len(content) // 150):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        try:
            found = read_archive(stream(bytes(damaged)), "x.whl")
        except SourceError:
            continue
        assert {
            path: data for path, data in found.members.items() if path in whole
        }.items() <= whole.items()


def test_an_encrypted_zip_is_refused() -> None:
    content = bytearray(wheel_bytes())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        start = archive.start_dir
    content[6] |= 1
    content[start + 8] |= 1
    with pytest.raises(SourceError, match="encrypted"):
        read_archive(stream(bytes(content)), "x.whl")


def test_a_zip_bomb_is_refused() -> None:
    members = [*sdist_files().items(), *((f"{TOP}/vllm/{n}.py", bytes(1 << 20)) for n in range(5))]
    with pytest.raises(SourceError, match="unpacks to more than 4 MiB"):
        read_archive(stream(zip_bytes(members)), "x.zip", limits=Limits(total=4 << 20))


def test_a_huge_zip_member_is_left_out_unread() -> None:
    members = [*sdist_files().items(), (f"{TOP}/vllm/big.py", bytes(5000))]
    contents = read_archive(stream(zip_bytes(members)), "x.zip", limits=Limits(member=4096))
    assert list(reasons(contents)) == ["vllm/big.py"]
