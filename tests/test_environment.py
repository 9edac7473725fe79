"""What exists on a platform: read off requirement files and ``setup.py``, else off the record."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from trees.minivllm import PLATFORMS, files

from auditor.builds import RecordedBuild, counts, parsed
from auditor.environment import Environment, in_force, without_built
from auditor.job import conventions
from auditor.platforms import Existence, build
from auditor.program import Files
from auditor.ruleset.distributions import (
    ModuleRule,
    VendoredRule,
    distributions,
    generated,
    vendored,
)
from auditor.ruleset.platforms import platforms
from auditor.sources.tree import MemoryTree
from auditor.values import Undecided

REQUIREMENTS = {
    "requirements/common.txt": """
        # the packages of every platform
        regex  # for tokenizers
        transformers >= 4.56.0, < 5
        pyyaml
        old-thing ; python_version < "3.9"
        numba == 0.61.2; platform_machine != "s390x"
        mistral_common[image] >= 1.8
        """,
    "requirements/cuda.txt": """
        -r common.txt
        --extra-index-url https://example.invalid/whl
        torch == 2.9.0
        flashinfer-python==0.5.2
        special @ https://example.invalid/special.whl
        """,
    "requirements/rocm.txt": "--requirement=common.txt\nconch-triton-kernels\n",
    "requirements/cpu.txt": "-r common.txt\n",
}
SETUP = """
    import torch
    import envs
    from setuptools import Extension, setup

    class CMakeExtension(Extension):
        def __init__(self, name, **kwargs):
            super().__init__(name, sources=[], **kwargs)

    VLLM_TARGET_DEVICE = envs.VLLM_TARGET_DEVICE

    def _is_cuda():
        return VLLM_TARGET_DEVICE == "cuda" and torch.version.cuda is not None

    def _is_hip():
        return VLLM_TARGET_DEVICE == "rocm"

    ext_modules = []
    if _is_cuda() or _is_hip():
        ext_modules.append(CMakeExtension(name="vllm._moe_C"))
    if _is_cuda():
        ext_modules.append(CMakeExtension("vllm.by_position"))
        ext_modules.append(CMakeExtension(name="vllm._deep_gemm_C"))
    elif _is_hip():
        ext_modules.append(CMakeExtension(name="vllm._rocm_C"))
    setup(name="vllm", ext_modules=ext_modules)
    """


def _existence(
    given: Mapping[str, str], platform: str, module: str, version: str | None = "0.30.0"
) -> Existence:
    tree = MemoryTree(files(given))
    environment = Environment(
        Files(tree), tree.files(), conventions(), distributions(), vendored(), version
    )
    (rule,) = [rule for rule in platforms() if rule.name == platform]
    return build(rule, {}, {}, (), environment.installed(rule, platforms())).existence(module)


LISTED = [
    ("cuda", "regex", True, "requirements/common.txt lists regex"),
    ("cuda", "yaml", True, "requirements/common.txt lists pyyaml"),
    ("cuda", "mistral_common", True, "requirements/common.txt lists mistral-common"),
    ("cuda", "flashinfer.comm", True, "requirements/cuda.txt lists flashinfer-python"),
    ("cuda", "special", True, "requirements/cuda.txt lists special"),
    ("rocm", "conch", True, "requirements/rocm.txt lists conch-triton-kernels"),
    ("rocm", "flashinfer", False,
     "requirements/cuda.txt lists flashinfer-python, requirements/rocm.txt does not"),
    ("cpu", "conch", False,
     "requirements/rocm.txt lists conch-triton-kernels, requirements/cpu.txt does not"),
    ("cpu", "json", True, "Python's standard library"),
    ("cpu", "vllm._z_C", False, "the tree has no vllm._z_C, and nothing builds it on cpu"),
    ("cpu", "deep_ep", False, "an optional extra, which no requirement file installs"),
    ("rocm", "aiter", True,
     "the ROCm images (docker/Dockerfile.rocm_base) build them from source"),
]  # fmt: skip


@pytest.mark.parametrize(("platform", "module", "exists", "fact"), LISTED)
def test_a_module_exists_where_a_file_lists_its_distribution(
    platform: str, module: str, exists: bool, fact: str
) -> None:
    assert _existence(REQUIREMENTS, platform, module) == Existence(exists, fact)


@pytest.mark.parametrize("module", ["old_thing", "aftermarket"])
def test_what_no_line_lists_on_the_reference_machine_stays_undecided(module: str) -> None:
    found = _existence(REQUIREMENTS, "cuda", module)
    assert isinstance(found.exists, Undecided)
    assert f"--with {module} or --without {module} decides it" in found.exists.reason


BUILT = [
    ("cuda", "vllm._moe_C", True),
    ("rocm", "vllm._moe_C", True),
    ("cpu", "vllm._moe_C", False),
    ("cuda", "vllm._rocm_C", False),
    ("rocm", "vllm._rocm_C", True),
    ("cuda", "vllm._deep_gemm_C", True),
    ("cuda", "vllm.third_party.deep_gemm.utils", True),
    ("rocm", "vllm.third_party.deep_gemm.utils", False),
    ("tpu", "vllm._version", True),
]


@pytest.mark.parametrize(("platform", "module", "exists"), BUILT)
def test_an_extension_exists_where_setup_py_builds_it(
    platform: str, module: str, exists: bool
) -> None:
    assert _existence({"setup.py": SETUP}, platform, module).exists is exists


def test_a_setup_py_without_extensions_builds_nothing() -> None:
    assert _existence({"setup.py": "x = 1\n"}, "cuda", "vllm._moe_C").exists is False


@pytest.mark.parametrize(
    "setup", ["def broken(:\n", "raise SystemExit\n", "ext_modules = unknown()\n"]
)
def test_a_setup_py_that_cannot_be_evaluated_leaves_extensions_open(setup: str) -> None:
    found = _existence({"setup.py": setup}, "cuda", "vllm._moe_C").exists
    assert isinstance(found, Undecided)
    assert "setup.py" in found.reason


def test_requirement_files_that_include_each_other_are_read_once() -> None:
    given = {"requirements/cuda.txt": "-r cpu.txt\nregex\n",
             "requirements/cpu.txt": "-r ./../requirements/cuda.txt\nmsgspec\n"}  # fmt: skip
    assert _existence(given, "cuda", "msgspec").exists is True
    assert _existence(given, "cpu", "regex").exists is True


def test_a_file_that_is_included_and_missing_is_no_problem() -> None:
    assert _existence({"requirements/cuda.txt": "-r gone.txt\nregex\n"}, "cuda", "regex").exists


# ---- the record --------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_tree_without_build_files_is_answered_by_the_record(platform: str) -> None:
    found = _existence({}, platform, "transformers.models")
    assert (found.exists, found.fact) == (True, "requirements/common.txt lists transformers")


def test_the_record_is_that_of_the_release() -> None:
    name = "vllm._C_stable_libtorch"
    assert _existence({}, "cuda", name, "0.16.0").exists is False
    assert _existence({}, "cuda", name, "0.30.0").exists is True
    assert _existence({}, "cuda", name, None).exists is True


BOUNDS = [
    ("0.30.0", "", "", True),
    ("0.30.0", "0.30.0", "", True),
    ("0.29.0", "0.30.0", "", False),
    ("0.30.0", "", "0.30.0", False),
    ("0.29.9", "0.28.0", "0.30.0", True),
    ("0.30.1.dev7+gabc", "0.30.0", "0.31.0", True),
    ("0.30.0+cu129", "0.30.0", "0.31.0", True),
    (None, "0.30.0", "", True),
    (None, "0.30.0", "0.31.0", False),
    ("not a version", "", "0.31.0", False),
]


@pytest.mark.parametrize(("version", "since", "until", "holds"), BOUNDS)
def test_a_bound_includes_since_and_excludes_until(
    version: str | None, since: str, until: str, holds: bool
) -> None:
    assert counts(parsed(version), since, until) is holds


def test_a_file_that_no_release_has_is_not_recorded() -> None:
    record = RecordedBuild("0.33.0")
    assert record.requirements("requirements/nothing.txt") is None
    assert record.requirements("requirements/rocm-build.txt") is None
    assert RecordedBuild("0.16.0").requirements("requirements/rocm-build.txt")
    assert record.extensions("nothing") == ()


# ---- what a build puts into the tree -----------------------------------------------------------

RULES = (VendoredRule("vllm._x_C", ("vllm.third_party.x", "vllm.y.interface"), True, "0.20.0"),)
PATHS = frozenset(
    ("vllm/__init__.py", "vllm/third_party/__init__.py", "vllm/third_party/x/__init__.py",
     "vllm/third_party/x/deep/er.py", "vllm/third_party/xy.py", "vllm/y/interface.py",
     "vllm/y/interfaces.py", "vllm/_version.py")
)  # fmt: skip


def test_what_a_build_adds_is_left_out_and_nothing_else() -> None:
    wrote = (ModuleRule(("vllm._version",), True, "written by the build"),)
    assert PATHS - without_built(PATHS, RULES, wrote) == {
        "vllm/third_party/x/__init__.py",
        "vllm/third_party/x/deep/er.py",
        "vllm/y/interface.py",
        "vllm/_version.py",
    }


def test_a_package_that_moved_into_the_tree_is_part_of_it_from_then_on() -> None:
    assert in_force(RULES, "0.19.0") == RULES
    assert in_force(RULES, "0.20.0") == ()
    path = "vllm/vllm_flash_attn/__init__.py"
    kept = {
        version: path in without_built(frozenset((path,)), in_force(vendored(), version), ())
        for version in ("0.16.0", "0.17.0", None)
    }
    assert kept == {"0.16.0": False, "0.17.0": True, None: True}
    assert {rule.names[0] for rule in generated()} >= {"vllm._version"}
