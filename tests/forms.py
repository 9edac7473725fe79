"""One release in every form that it comes in: folder, git revision, wheel, sdist, installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dulwich.refs import Ref
from dulwich.repo import Repo
from sources.minitree import pkg_info, tar_bytes, write_files, zip_bytes
from sources.repositories import commit

from auditor.errors import SourceError
from auditor.sources.cache import CacheConfig
from auditor.sources.open import open_source
from auditor.sources.tree import Source

Files = Mapping[str, bytes]

#: What only a built wheel holds (seen in those of 0.16.0 and 0.33.0). Running one would be seen.
BUILT: dict[str, bytes] = {
    "vllm/_version.py": b"__version__ = version = 'built'\n",
    "vllm/_C.abi3.so": b"\x7fELF",
    "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so": b"\x7fELF",
    "vllm/vllm_flash_attn/cute/__init__.py": b"raise SystemExit\n",
    "vllm/vllm_flash_attn/layers/rotary.py": b"raise SystemExit\n",
    "vllm/third_party/triton_kernels/__init__.py": b"raise SystemExit\n",
    "vllm/third_party/deep_gemm/__init__.py": b"raise SystemExit\n",
    "vllm/third_party/flashmla/flash_mla_interface.py": b"raise SystemExit\n",
}


def contents(source: Source) -> dict[str, bytes]:
    """The files of a source whose contents are known."""
    found = {}
    for path in source.tree.files():
        try:
            found[path] = source.tree.read(path)
        except SourceError:
            continue
    return found


def _package(files: Files) -> dict[str, bytes]:
    return {path: content for path, content in files.items() if path.startswith("vllm/")}


def _open(spec: object, at: Path) -> Source:
    return open_source(str(spec), cwd=at, cache=CacheConfig.at(at / "cache"))


def folder(files: Files, version: str, at: Path) -> Source:
    """An unpacked release."""
    return _open(write_files(at / "folder", {**files, "PKG-INFO": pkg_info(version)}), at)


def revision(files: Files, version: str, at: Path) -> Source:
    """The tag of a repository that holds what is kept under version control."""
    kept = {path: text for path, text in files.items() if path not in ("PKG-INFO", *BUILT)}
    (at / "repository").mkdir()
    with Repo.init(at / "repository") as repository:
        made = commit(repository, kept)
        repository.refs[Ref(f"refs/tags/v{version}".encode())] = made
    return _open(f"{at / 'repository'}@v{version}", at)


def wheel(files: Files, version: str, at: Path) -> Source:
    """The package and its metadata: no requirement files and no ``setup.py``."""
    return _wheel(_package(files), version, at / f"vllm-{version}-cp38-abi3-linux_x86_64.whl")


def built_wheel(files: Files, version: str, at: Path) -> Source:
    """A wheel that also holds what building the extensions puts into the package."""
    path = at / f"vllm-{version}-cp39-abi3-linux_x86_64.whl"
    return _wheel({**_package(files), **BUILT}, version, path)


def _wheel(members: Files, version: str, path: Path) -> Source:
    metadata = (f"vllm-{version}.dist-info/METADATA", pkg_info(version))
    path.write_bytes(zip_bytes([*members.items(), metadata]))
    return _open(path, path.parent)


def sdist(files: Files, version: str, at: Path) -> Source:
    """The archive of the sources."""
    top = f"vllm-{version}"
    members = {**files, "PKG-INFO": pkg_info(version)}
    path = at / f"{top}.tar.gz"
    path.write_bytes(tar_bytes((f"{top}/{name}", text) for name, text in members.items()))
    return _open(path, at)


def installed(files: Files, version: str, at: Path) -> Source:
    """A site-packages folder."""
    metadata = {f"vllm-{version}.dist-info/METADATA": pkg_info(version)}
    return _open(write_files(at / "site-packages", {**_package(files), **metadata}), at)


FORMS: dict[str, Callable[[Files, str, Path], Source]] = {
    "folder": folder,
    "git revision": revision,
    "wheel": wheel,
    "built wheel": built_wheel,
    "sdist": sdist,
    "installed": installed,
}
