"""Same input, same bytes: whatever form a release comes in, and however often it is asked."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from forms import BUILT, FORMS, contents
from trees.minivllm import INIT, PLATFORMS, coverage, files, row_of

from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage, from_json, json_schema, sorted_coverage, to_json
from auditor.ruleset.files import rules_folder
from auditor.sources.tree import Source

VERSION = "0.30.0"
Release = Callable[[str], Source]

#: It imports what only some platforms have: a distribution of the common requirements, one of a
#: platform's own, an extension, a vendored package, and the version that a build writes.
TREE = {
    INIT: """
        from vllm.platforms import current_platform
        import regex
        import vllm._version

        try:
            import vllm._C_stable_libtorch
            from vllm.third_party.triton_kernels import swiglu
        except ImportError:
            from .amd import Draft
        else:
            from .nvidia import Draft

        if current_platform.is_xpu():
            import vllm.third_party.flashmla.flash_mla_interface
        if current_platform.is_cpu():
            import flashinfer
        """,
    "requirements/common.txt": "regex\ntransformers >= 4.56\n",
    "requirements/cuda.txt": "-r common.txt\nflashinfer-python==0.6\n",
    **{f"requirements/{name}.txt": "-r common.txt\n" for name in ("rocm", "xpu", "cpu", "tpu")},
    "vllm/third_party/__init__.py": "",
    "vllm/third_party/flashmla/__init__.py": "",
    "setup.py": """
        from setuptools import Extension, setup
        import envs

        class CMakeExtension(Extension):
            pass

        ext_modules = []
        if envs.VLLM_TARGET_DEVICE in ("cuda", "rocm"):
            ext_modules.append(CMakeExtension(name="vllm._C_stable_libtorch"))
            ext_modules.append(CMakeExtension(name="vllm.triton_kernels"))
        setup(ext_modules=ext_modules)
        """,
}
COMPARED = sorted(FORMS.keys() - {"folder"})


@cache
def _of(source: Source) -> bytes:
    return to_json(audit(source, Request()))


# ---- a mini release whose build files say what the record says of 0.30.0 ------------------------


@pytest.mark.parametrize("form", ["sdist", "git revision"])
def test_a_mini_release_with_its_build_files_answers_alike(form: str, tmp_path: Path) -> None:
    given = files(TREE)
    first = FORMS["folder"](given, VERSION, tmp_path)
    assert to_json(audit(FORMS[form](given, VERSION, tmp_path), Request())) == to_json(
        audit(first, Request())
    )


@pytest.mark.parametrize("form", ["built wheel", "installed"])
def test_a_mini_release_without_its_build_files_answers_alike(form: str, tmp_path: Path) -> None:
    given = files(TREE)
    first = FORMS["wheel"](given, VERSION, tmp_path)
    assert to_json(audit(FORMS[form](given, VERSION, tmp_path), Request())) == to_json(
        audit(first, Request())
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_facts_of_a_mini_release_are_those_of_the_platform(form: str, tmp_path: Path) -> None:
    document = audit(FORMS[form](files(TREE), VERSION, tmp_path), Request())
    verdicts = {name: row_of(document, name).verdict for name in PLATFORMS}
    assert document.source.version == VERSION
    assert verdicts == {
        "cuda": "yes?", "rocm": "yes?", "xpu": "import", "cpu": "import", "tpu": "no", "oot": "no",
    }  # fmt: skip


def test_a_tree_that_says_what_it_builds_is_believed_before_the_record(tmp_path: Path) -> None:
    given = files({**TREE, "setup.py": "ext_modules = []\n"})
    document = audit(FORMS["folder"](given, VERSION, tmp_path), Request())
    assert row_of(document, "cuda").verdict == "no"


# ---- a real release -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def first(release: Release) -> Coverage:
    return audit(release(VERSION), Request())


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_real_release_answers_byte_for_byte_the_same_in_every_form(
    form: str, release: Release, first: Coverage, tmp_path: Path
) -> None:
    source = FORMS[form](contents(release(VERSION)), VERSION, tmp_path)
    assert to_json(audit(source, Request())) == to_json(first)


@pytest.mark.network
@pytest.mark.slow
def test_a_release_that_is_not_recorded_answers_with_the_nearest_record(
    release: Release, first: Coverage, tmp_path: Path
) -> None:
    later = FORMS["wheel"](contents(release(VERSION)), "0.30.1.dev7+gabc", tmp_path)
    document = audit(later, Request())
    assert [row.verdict for row in document.rows] == [row.verdict for row in first.rows]


@pytest.mark.network
@pytest.mark.slow
def test_the_record_is_what_the_releases_say(release: Release) -> None:
    from record_builds import recorded

    from auditor.builds import RecordedBuild

    for version in ("0.16.0", "0.22.0", "0.30.0"):
        lines, extensions = recorded(version)
        record = RecordedBuild(version)
        assert {path: sorted(text) for path, text in lines.items() if text} == {
            path: sorted(record.requirements(path) or ()) for path, text in lines.items() if text
        }
        assert extensions == {name: record.extensions(name) for name in extensions}


def test_the_record_keeps_no_two_lines_alike() -> None:
    lines = (rules_folder() / "builds.toml").read_text().splitlines()
    file, seen = "", set()
    for line in lines:
        file = line if line.startswith(("file", "platform")) else file
        if line.startswith("    {"):
            assert (file, line) not in seen
            seen.add((file, line))
    assert len(seen) > 100


# ---- the same request ---------------------------------------------------------------------------


def test_two_runs_give_the_same_bytes() -> None:
    assert to_json(coverage(TREE)) == to_json(coverage(TREE))


def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    source = FORMS["sdist"](files(TREE), VERSION, tmp_path)
    documents = [audit(source, Request(), Resources(processes=number)) for number in (1, 2)]
    assert to_json(documents[0]) == to_json(documents[1])


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_platforms_changes_nothing(seed: int) -> None:
    names = list(PLATFORMS)
    random.Random(seed).shuffle(names)
    assert to_json(coverage(TREE, Request(platforms=tuple(names)))) == to_json(coverage(TREE))


@pytest.mark.parametrize("seed", range(3))
def test_a_shuffled_document_is_sorted_back(seed: int) -> None:
    document = coverage(TREE)
    rows, undecided = list(document.rows), list(document.undecided)
    random.Random(seed).shuffle(rows)
    random.Random(seed).shuffle(undecided)
    shuffled = msgspec.structs.replace(
        document, rows=tuple(rows), undecided=tuple(undecided)
    )  # fmt: skip
    assert sorted_coverage(shuffled) == document


def test_the_order_of_files_in_a_tree_changes_nothing() -> None:
    backwards = dict(reversed(TREE.items()))
    assert to_json(coverage(backwards)) == to_json(coverage(TREE))


# ---- the document -------------------------------------------------------------------------------


def _validate(document: Coverage) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    assert list(validator.iter_errors(json.loads(to_json(document)))) == []


def test_a_document_fits_its_schema_and_round_trips() -> None:
    document = coverage(TREE)
    _validate(document)
    assert from_json(to_json(document)) == document


@pytest.mark.network
@pytest.mark.slow
def test_the_document_of_a_real_release_fits_its_schema_and_round_trips(first: Coverage) -> None:
    _validate(first)
    assert from_json(to_json(first)) == first
    assert sorted_coverage(first) == first


@pytest.mark.network
@pytest.mark.slow
def test_the_document_of_a_real_release_names_no_path_of_this_machine(first: Coverage) -> None:
    text = to_json(first).decode()
    assert str(Path.home()) not in text
    assert str(Path.cwd()) not in text
    assert all(not step.path.startswith("/") for row in first.rows for step in row.evidence)


def test_the_files_of_a_build_are_not_modules_of_the_tree() -> None:
    built = {path: text.decode("latin-1") for path, text in BUILT.items()}
    assert to_json(coverage({**TREE, **built})) == to_json(coverage(TREE))
