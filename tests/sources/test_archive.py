from __future__ import annotations

import io
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest

from auditor.errors import SourceError
from auditor.sources.archive import ArchiveContents, read_archive
from auditor.sources.selection import Limits

from .minitree import (
    CHECKOUT,
    PACKAGE,
    dist_info,
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


@pytest.mark.parametrize("scheme", ["purelib", "platlib"])
def test_a_package_in_the_data_folder_of_a_wheel_is_where_an_installer_puts_it(scheme: str) -> None:
    members = [(f"vllm-0.30.0.data/{scheme}/{name}", data) for name, data in PACKAGE.items()]
    members += [*dist_info().items(), ("vllm-0.30.0.data/scripts/vllm/__init__.py", b"no")]
    contents = read_archive(stream(zip_bytes(members)), "vllm-0.30.0-py3-none-any.whl")
    assert contents.members["vllm/envs.py"] == PACKAGE["vllm/envs.py"]
    assert b"no" not in contents.members.values()
    assert not contents.problems


@pytest.mark.parametrize(("name", "reason"), [("../../x.py", "(..)"), ("/x.py", "absolute")])
def test_a_name_hidden_in_a_data_folder_is_checked_too(name: str, reason: str) -> None:
    members = [*PACKAGE.items(), (f"vllm-0.30.0.data/purelib/{name}", b"evil")]
    contents = read_archive(stream(zip_bytes(members)), "x.whl")
    assert b"evil" not in contents.members.values()
    (found,) = reasons(contents).values()
    assert reason in found


def lying_zip(method: int, real: bytes, declared: int) -> bytes:
    """A wheel with a member that unpacks to more than it declares."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in [*PACKAGE.items(), ("vllm/bomb.py", real)]:
            archive.writestr(name, content)
        start = archive.getinfo("vllm/bomb.py").header_offset
    patched = bytearray(buffer.getvalue())
    entry = patched.rindex(b"vllm/bomb.py") - 46
    for place in (start + 22, entry + 24):
        patched[place : place + 4] = declared.to_bytes(4, "little")
    return bytes(patched)


def test_a_zip_member_that_lies_about_its_size_is_not_unpacked_whole() -> None:
    content = lying_zip(zipfile.ZIP_DEFLATED, bytes(64 << 20), 100)
    tracemalloc.start()
    with pytest.raises(SourceError, match="Bad CRC-32"):
        read_archive(stream(content), "x.whl")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_member_of_another_compression_is_left_out(method: int) -> None:
    buffer = io.BytesIO(wheel_bytes())
    with zipfile.ZipFile(buffer, "a", method) as archive:
        archive.writestr("vllm/x.py", b"x")
    contents = read_archive(stream(buffer.getvalue()), "x.whl")
    assert reasons(contents) == {"vllm/x.py": "compressed by a method that no wheel uses"}
    assert contents.members["vllm/envs.py"] == PACKAGE["vllm/envs.py"]


@pytest.mark.parametrize("content", [b"", b"x", b"x" * 5000])
def test_a_zip64_member_is_read(content: bytes) -> None:
    buffer = io.BytesIO(wheel_bytes())
    with (
        zipfile.ZipFile(buffer, "a") as archive,
        archive.open("vllm/x.py", "w", force_zip64=True) as member,
    ):
        member.write(content)
    contents = read_archive(stream(buffer.getvalue()), "x.whl")
    assert contents.members["vllm/x.py"] == content
    assert not contents.problems


@pytest.mark.parametrize("size", [0, 1, 300])
def test_a_zip_member_with_a_wrong_crc_is_refused(size: int) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("vllm/__init__.py", b"x" * size)
    content = bytearray(buffer.getvalue())
    entry = content.rindex(b"vllm/__init__.py") - 46
    for place in (14, entry + 16):
        content[place] ^= 1
    with pytest.raises(SourceError, match="Bad CRC-32"):
        read_archive(stream(bytes(content)), "x.whl")


@pytest.mark.parametrize(
    ("raw", "path", "reason"),
    [
        ("vllm/caf\u00e9.py".encode(), "vllm/caf\u00e9.py", None),
        (b"vllm/caf\xe9 .py", "vllm/caf\\xe9 .py", "its name is not UTF-8"),
        (b"vllm/a.py\0xxx", "vllm/a.py\\x00xxx", "its name holds a control character"),
        (b"vllm/a\\b.pyxxx", "vllm/a\\b.pyxxx", "its name holds a backslash"),
    ],
)
def test_a_zip_name_is_taken_for_the_bytes_that_are_there(
    raw: bytes, path: str, reason: str | None
) -> None:
    stand_in = ("vllm/" + "n" * (len(raw) - 5)).encode()
    content = zip_bytes([*PACKAGE.items(), (stand_in.decode(), b"x")]).replace(stand_in, raw)
    contents = read_archive(stream(content), "x.whl")
    assert reasons(contents) == ({} if reason is None else {path: reason})
    assert (path in contents.members) is (reason is None)


@pytest.mark.parametrize("read", [read_tar, read_zip])
def test_a_very_long_name_is_left_out_and_shown_in_short(
    read: Callable[..., ArchiveContents],
) -> None:
    contents = read((f"{TOP}/vllm/{'n' * 5000}.py", b""))
    ((path, reason),) = reasons(contents).items()
    assert len(path) < 400
    assert reason == "its name is longer than 1000 characters"


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (Limits(members=5), "more than 5 files"),
        (Limits(kept=20), "more than 20 bytes of source"),
    ],
)
@pytest.mark.parametrize("content", [sdist_bytes(), wheel_bytes()], ids=["tar", "zip"])
def test_an_archive_made_to_exhaust_memory_is_refused(
    content: bytes, limits: Limits, told: str
) -> None:
    with pytest.raises(SourceError, match=told):
        read_archive(stream(content), "x.whl", limits=limits)


def test_the_top_folder_of_an_sdist_can_have_any_name() -> None:
    for top in ("whatever", "vllm", "vllm-9.9", "a b", "requirements"):
        content = tar_bytes((f"{top}/{name}", data) for name, data in CHECKOUT.items())
        contents = read_archive(stream(content), "vllm-0.30.0.tar.gz")
        assert contents.members["vllm/envs.py"] == PACKAGE["vllm/envs.py"]
        assert "pyproject.toml" in contents.members
        assert not contents.problems
