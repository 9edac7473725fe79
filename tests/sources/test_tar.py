from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.errors import SourceError
from auditor.sources.archive import ArchiveContents, read_archive
from auditor.sources.selection import Limits, has_contents, is_listed

from .minitree import PACKAGE, sdist_bytes, stream, tar_bytes

NAMES = st.text(alphabet="abcdé./- ", min_size=1, max_size=120).filter(
    lambda name: ".." not in name and not name.startswith("/") and not name.endswith("/")
)
MEMBERS = st.dictionaries(NAMES, st.binary(max_size=1500), max_size=6)


def read(content: bytes, limits: Limits | None = None) -> ArchiveContents:
    return read_archive(stream(content), "vllm-0.30.0.tar.gz", limits=limits or Limits())


def tar_of(members: dict[str, bytes], kind: int, mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{mode}", format=kind) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def expected(content: bytes) -> dict[str, bytes]:
    """What tarfile reads of the listed files below ``vllm-0.30.0/``."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            path = "/".join(part for part in member.name.split("/") if part not in ("", "."))
            path = path.removeprefix("vllm-0.30.0/")
            file = archive.extractfile(member)
            if file is not None and is_listed(path) and has_contents(path):
                found[path] = file.read()
    return found


@settings(max_examples=60, deadline=None)
@given(
    MEMBERS,
    st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
    st.sampled_from(["gz", "bz2", "xz", ""]),
)
def test_a_tar_is_read_as_tarfile_reads_it(members: dict[str, bytes], kind: int, mode: str) -> None:
    inside = {f"vllm-0.30.0/vllm/{name}": content for name, content in members.items()}
    content = tar_of({"vllm-0.30.0/vllm/__init__.py": b"", **inside}, kind, mode)
    contents = read(content)
    kept = {path: data for path, data in contents.members.items() if data is not None}
    assert kept == expected(content)


@pytest.mark.parametrize("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_a_long_name_is_read_in_every_format(kind: int) -> None:
    name = f"vllm-0.30.0/vllm/{'d' * 60}/{'e' * 60}/{'f' * 60}.py"
    content = tar_of({"vllm-0.30.0/vllm/__init__.py": b"", name: b"x"}, kind, "gz")
    assert read(content).members[name.removeprefix("vllm-0.30.0/")] == b"x"


@pytest.mark.network
@pytest.mark.slow
def test_a_real_sdist_is_read_as_tarfile_reads_it(real_sdist: Path) -> None:
    with open(real_sdist, "rb") as file:
        contents = read_archive(file, real_sdist.name)
    found: dict[str, bytes | None] = {}
    with tarfile.open(real_sdist) as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            data = archive.extractfile(member)
            if data is not None and is_listed(path):
                found[path] = data.read() if has_contents(path) else None
    assert contents.members == found
    assert not contents.problems


@pytest.mark.parametrize("mode", ["gz", "bz2", "xz", ""])
def test_a_tar_cut_off_anywhere_is_refused(mode: str) -> None:
    content = sdist_bytes(mode=mode)
    for length in range(1, len(content), max(1, len(content) // 60)):
        if mode == "" and length >= len(content.rstrip(b"\0")):
            break  # only padding is missing from here on
        with pytest.raises(SourceError) as raised:
            read(content[:length])
        assert "vllm-0.30.0.tar.gz" in raised.value.message
        assert raised.value.next_step


@pytest.mark.parametrize("mode", ["gz", "bz2", "xz"])
def test_a_flipped_byte_is_an_error_and_never_other_contents(mode: str) -> None:
    content = sdist_bytes(mode=mode)
    whole = read(content).members
    for place in range(20, len(content), max(1, len(content) // 80)):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        try:
            members = read(bytes(damaged)).members
        except SourceError:
            continue
        assert members == whole  # the byte was in a header field that says nothing


def test_the_end_of_the_compressed_data_is_checked_too() -> None:
    damaged = bytearray(sdist_bytes())
    damaged[-6] ^= 0xFF  # the gzip checksum
    with pytest.raises(SourceError, match="corrupt gzip"):
        read(bytes(damaged))


def test_a_wrong_header_checksum_is_refused() -> None:
    content = bytearray(sdist_bytes(mode=""))
    content[0] ^= 1
    with pytest.raises(SourceError, match="checksum"):
        read(bytes(content))


def test_an_oversized_extended_header_is_refused() -> None:
    info = tarfile.TarInfo("x")
    info.type = tarfile.XHDTYPE
    info.size = 1 << 40
    with pytest.raises(SourceError, match="far too long"):
        read(gzip.compress(info.tobuf(tarfile.GNU_FORMAT)))


@pytest.mark.parametrize(
    "record", [b"12 path=", b"x path=a\n", b"3 \n", b"99 path=a\n", b"0 path=a\n"]
)
def test_a_malformed_pax_record_is_refused(record: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type = tarfile.XHDTYPE
    info.size = len(record)
    with pytest.raises(SourceError, match="malformed pax header"):
        read(gzip.compress(info.tobuf() + record.ljust(512, b"\0") + bytes(1024)))


def test_two_gzip_streams_in_a_row_are_one_archive() -> None:
    plain = sdist_bytes(mode="")
    content = gzip.compress(plain[:1000]) + gzip.compress(plain[1000:])
    assert read(content).members["vllm/envs.py"] == PACKAGE["vllm/envs.py"]


@pytest.mark.parametrize("mode", ["gz", "bz2", "xz"])
def test_a_bomb_is_refused_after_little_work(mode: str) -> None:
    info = tarfile.TarInfo("docs/zeros")
    info.size = 32 << 20
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{mode}") as archive:  # type: ignore[call-overload]
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    with pytest.raises(SourceError, match="unpacks to more than 4 MiB"):
        read(buffer.getvalue(), Limits(total=4 << 20))


def test_a_member_larger_than_any_source_file_is_left_out() -> None:
    content = tar_bytes([*_package(), ("v/vllm/big.py", bytes(5000)), ("v/vllm/b.so", bytes(5000))])
    contents = read(content, Limits(member=4096))
    assert "vllm/big.py" not in contents.members
    assert contents.members["vllm/b.so"] is None
    assert [problem.path for problem in contents.problems] == ["vllm/big.py"]


def _package() -> list[tuple[str, bytes]]:
    return [(f"v/{name}", content) for name, content in PACKAGE.items()]


def raw_member(name: str, kind: bytes, data: bytes, patch: dict[int, bytes] | None = None) -> bytes:
    """One tar member with bytes of its header overwritten, and the checksum made right again."""
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(data)
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    for place, value in (patch or {}).items():
        header[place : place + len(value)] = value
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + sum(header[156:]) + 8 * 32)
    return bytes(header) + data.ljust(-(-len(data) // 512) * 512, b"\0")


@pytest.mark.parametrize("further", [0, 1, 3])
def test_what_follows_an_old_sparse_file_is_read(further: int) -> None:
    sparse = raw_member("v/vllm/s.py", b"S", b"", {482: bytes([further > 0]), 124: b"0" * 11})
    for left in range(further - 1, -1, -1):
        sparse += bytes(504) + bytes([left > 0]) + bytes(7)
    rest = tar_bytes([*_package(), ("v/vllm/after.py", b"after")], mode="")
    contents = read(sparse + rest)
    assert contents.members["vllm/after.py"] == b"after"
    assert [problem.reason for problem in contents.problems] == ["a sparse file"]


def test_a_new_sparse_file_is_not_taken_for_its_packed_bytes() -> None:
    info = tarfile.TarInfo("v/vllm/s.py")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.name": "v/vllm/s.py"}
    content = tar_bytes([*_package(), info])
    contents = read(content)
    assert "vllm/s.py" not in contents.members
    assert [problem.reason for problem in contents.problems] == ["a sparse file"]


def test_the_extended_header_of_solaris_is_read_as_that_of_pax() -> None:
    name = b"v/vllm/real.py"
    record = b"%d path=%s\n" % (len(name) + 9, name)
    members = raw_member("x", b"X", record) + raw_member("v/vllm/short.py", b"0", b"x")
    contents = read(members + tar_bytes(_package(), mode=""))
    assert contents.members["vllm/real.py"] == b"x"
    assert "vllm/short.py" not in contents.members


def test_extended_headers_do_not_fill_the_memory() -> None:
    headers = (
        tarfile.TarInfo.create_pax_global_header({f"key{number}": "x" * 100_000})
        for number in range(100)
    )
    content = b"".join(headers) + tar_bytes(_package(), mode="")
    tracemalloc.start()
    contents = read(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert contents.members["vllm/envs.py"] == PACKAGE["vllm/envs.py"]
    assert peak < 4 << 20
