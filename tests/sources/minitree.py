"""A vLLM of a few files, and the folder, archives and repository it can come in."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

VERSION = "0.30.0"
NEXT_VERSION = "0.31.0"

# Running any of these would leave a file behind in the folder the process is in.
TRAP = b"open('executed', 'w').close()\nraise SystemExit('executed')\n"

PACKAGE: dict[str, bytes] = {
    "vllm/__init__.py": TRAP,
    "vllm/envs.py": b"VLLM_TARGET_DEVICE = 'cuda'\n",
    "vllm/model_executor/models/registry.py": b"_SPECULATIVE_DECODING_MODELS = {}\n",
    "vllm/py.typed": b"",
    "vllm/config/tuning.json": b"{}\n",
}
CHECKOUT: dict[str, bytes] = {
    **PACKAGE,
    "pyproject.toml": b"[project]\nname = 'vllm'\n",
    "setup.py": TRAP,
    "requirements/common.txt": b"torch\n",
    "tests/test_x.py": b"",
    "docs/index.md": b"# vLLM\n",
}


def pkg_info(version: str = VERSION, name: str = "vllm") -> bytes:
    return f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\nVersion: 9\n".encode()


def write_files(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def sdist_files(version: str = VERSION) -> dict[str, bytes]:
    top = f"vllm-{version}"
    files = {f"{top}/{name}": content for name, content in CHECKOUT.items()}
    return {**files, f"{top}/PKG-INFO": pkg_info(version)}


def dist_info(version: str = VERSION, distribution: str = "vllm") -> dict[str, bytes]:
    folder = f"{distribution}-{version}.dist-info"
    record = "".join(f"{name},,\n" for name in sorted(PACKAGE)).encode()
    return {
        f"{folder}/METADATA": pkg_info(version, distribution.replace("_", "-")),
        f"{folder}/RECORD": record,
    }


def tar_bytes(members: Iterable[tarfile.TarInfo | tuple[str, bytes]], mode: str = "gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return compressed(buffer.getvalue(), mode)


def compressed(content: bytes, mode: str = "gz") -> bytes:
    """The same bytes for the same ``content``, unlike what tarfile writes."""
    if mode == "gz":
        return gzip.compress(content, mtime=0)
    if mode == "bz2":
        return bz2.compress(content)
    return lzma.compress(content) if mode == "xz" else content


def sdist_bytes(version: str = VERSION, mode: str = "gz") -> bytes:
    return tar_bytes(sdist_files(version).items(), mode)


def link_member(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def zip_bytes(members: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            if content.startswith(b"-> "):
                info.create_system = 3
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, content)
    return buffer.getvalue()


def wheel_bytes(version: str = VERSION, distribution: str = "vllm") -> bytes:
    return zip_bytes([*PACKAGE.items(), *dist_info(version, distribution).items()])


def stream(content: bytes) -> IO[bytes]:
    return io.BytesIO(content)


def snapshot(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Every entry below ``folder``: mode, time of last modification, hash."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = os.lstat(path)
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        stamp = status.st_mtime_ns if stat.S_ISREG(status.st_mode) else 0
        found[str(path)] = (status.st_mode, stamp, hashlib.sha256(content).hexdigest())
    return found
