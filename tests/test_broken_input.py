"""Broken and hostile input through the command line: one clear message, and no traceback."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from sources.minitree import link_member, pkg_info, snapshot, tar_bytes, zip_bytes
from trees.minivllm import BASE, INIT, REGISTRY, files, write

from auditor import main
from auditor.coverage import Coverage, UndecidedItem, from_json

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Coverage:
        return from_json(self.out.encode())

    def items(self, kind: str) -> list[UndecidedItem]:
        return [item for item in self.document.undecided if item.kind == kind]


@pytest.fixture
def audit(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Audit:
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("no_proxy", "*")
    return Audit(tmp_path, capsys)


@dataclass(frozen=True)
class Audit:
    """Runs the command on a tree, an archive, or whatever ``--vllm`` names."""

    folder: Path
    capsys: Capture

    def spec(self, spec: object, *more: str) -> Outcome:
        args = ["--vllm", str(spec), "--quiet", "--cache-dir", str(self.folder / "cache"), *more]
        code = main.run(main.command, args, "audit")
        captured = self.capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Outcome(code, captured.out, captured.err)

    def tree(self, given: Mapping[str, str | bytes], *more: str) -> Outcome:
        root = write(self.folder / "tree", given)
        return self.spec(root, "--format", "json", *more)


def _one_message(outcome: Outcome, *parts: str) -> None:
    """Exit code 2, nothing on stdout, and one line that says what, where and what next."""
    assert (outcome.code, outcome.out) == (2, "")
    (line,) = outcome.err.splitlines()
    assert line.startswith("error: ")
    for part in parts:
        assert part in line


# ---- sources -----------------------------------------------------------------------------------


def test_a_path_that_is_missing(audit: Audit) -> None:
    _one_message(
        audit.spec(audit.folder / "nowhere"), "nowhere", "no such file or folder", "Check the path"
    )


def test_a_folder_without_vllm(audit: Audit) -> None:
    (audit.folder / "empty").mkdir()
    _one_message(audit.spec(audit.folder / "empty"), "empty", "holds no vLLM", "Give a vLLM")


def test_a_version_that_does_not_exist(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    links = audit.folder / "links"
    links.mkdir()
    (links / "vllm-0.30.0.tar.gz").write_bytes(_sdist({}))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    assert audit.spec("0.30.0").code == 0
    _one_message(audit.spec("9.9.9"), "9.9.9", "0.30.0")


@pytest.mark.parametrize("spec", ["9.9.9", "latest"])
def test_no_network(spec: str, audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    _one_message(audit.spec(spec), "package index", "no connection", "Check the network")


def _sdist(given: Mapping[str, str | bytes]) -> bytes:
    top = "vllm-0.30.0"
    members = [(f"{top}/{path}", content) for path, content in files(given).items()]
    return tar_bytes([*members, (f"{top}/PKG-INFO", pkg_info("0.30.0"))])


def _wheel() -> bytes:
    info = ("vllm-0.30.0.dist-info/METADATA", pkg_info("0.30.0"))
    return zip_bytes([*files({}).items(), info])


@pytest.mark.parametrize("name", ["vllm-0.30.0.tar.gz", "vllm-0.30.0-py3-none-any.whl"])
@pytest.mark.parametrize("damage", ["truncated", "overwritten", "empty", "text"])
def test_an_archive_that_is_damaged(name: str, damage: str, audit: Audit) -> None:
    whole = _sdist({}) if name.endswith("gz") else _wheel()
    middle = len(whole) // 2
    content = {
        "truncated": whole[:middle],
        "overwritten": whole[:middle] + bytes(64) + whole[middle + 64 :],
        "empty": b"",
        "text": b"404 not found\n",
    }[damage]
    path = audit.folder / name
    path.write_bytes(whole)
    assert audit.spec(path).code == 0
    path.write_bytes(content)
    _one_message(audit.spec(path), name)


TOP = "vllm-0.30.0"
HOSTILE = [
    ("../../outside.py", b"x = 1\n"),
    ("/etc/outside.py", b"x = 1\n"),
    (f"{TOP}/vllm/../../outside.py", b"x = 1\n"),
    link_member(f"{TOP}/vllm/link.py", "/etc/passwd"),
    link_member(f"{TOP}/vllm/hard.py", f"{TOP}/vllm/envs.py", tarfile.LNKTYPE),
]


@pytest.mark.parametrize(
    "member", HOSTILE, ids=["parent", "absolute", "through a folder", "link", "hard link"]
)
def test_a_member_that_leads_elsewhere_is_left_out_and_listed(
    member: tarfile.TarInfo | tuple[str, bytes], audit: Audit
) -> None:
    members = [(f"{TOP}/{path}", content) for path, content in files({}).items()]
    path = audit.folder / f"{TOP}.tar.gz"
    path.write_bytes(tar_bytes([*members, (f"{TOP}/PKG-INFO", pkg_info("0.30.0")), member]))
    outcome = audit.spec(path, "--format", "json")
    name = member.name if isinstance(member, tarfile.TarInfo) else member[0]
    (item,) = outcome.items("source")
    assert outcome.code == 3
    assert item.path.rpartition("/")[2] == name.rpartition("/")[2]
    assert item.reason
    assert {entry.name for entry in audit.folder.iterdir()} == {path.name, "cache"}


# ---- the registry ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "line"),
    [("load()", 1), ("None", 1), ("[('A', ('m', 'C'))]", 1), ("open('t').read()", 1),
     ("{name: ('m', name) for name in names()}", 1), ("{", 1)],
)  # fmt: skip
def test_a_registry_that_is_no_dict_of_constants(table: str, line: int, audit: Audit) -> None:
    outcome = audit.tree({REGISTRY: f"_SPECULATIVE_DECODING_MODELS = {table}\n"})
    _one_message(outcome, f"{REGISTRY}:{line}: ")


def test_an_entry_that_is_no_pair(audit: Audit) -> None:
    table = '{"A": "vllm.models.draft", "B": ("vllm.models.draft.amd", "Draft")}'
    outcome = audit.tree({REGISTRY: f"_SPECULATIVE_DECODING_MODELS = {table}\n"})
    (item,) = outcome.items("table")
    assert outcome.code == 3
    assert (item.path, item.line, item.text) == (REGISTRY, 1, "A")
    assert {row.architecture for row in outcome.document.rows} == {"B"}


# ---- modules that cannot be read ----------------------------------------------------------------

DEEP = "x = " + "(" * 5000 + "1" + ")" * 5000 + "\n"
CHAIN = "x = " + "+".join(["1"] * 60_000) + "\n"
NESTED = "\n".join(" " * depth + "if x:" for depth in range(120)) + "\n" + " " * 120 + "pass\n"
BROKEN: dict[str, str | bytes] = {
    "a syntax error": "from .nvidia import Draft\ndef broken(:\n",
    "bytes that are not UTF-8": b"from .nvidia import Draft\nx = 'caf\xe9'\n",
    "a null byte": b"from .nvidia import Draft\nx = '\0'\n",
    "parentheses nested too deeply": DEEP,
    "blocks nested too deeply": NESTED,
    "an encoding nobody knows": b"# -*- coding: klingon -*-\nfrom .nvidia import Draft\n",
}
HERE = "vllm/models/draft/broken.py"
NOT_REACHED = "vllm/models/draft/not_reached.py"


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_dispatch_module_that_cannot_be_read(content: str | bytes, audit: Audit) -> None:
    outcome = audit.tree({INIT: content})
    (item,) = outcome.items("file")
    assert (outcome.code, item.path) == (3, INIT)
    assert {(row.verdict, row.hasattr) for row in outcome.document.rows} == {("?", None)}
    assert all(row.reason for row in outcome.document.rows)


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_the_module_of_a_base_that_cannot_be_read(content: str | bytes, audit: Audit) -> None:
    outcome = audit.tree(
        {INIT: "from .broken import Base\n\nclass Draft(Base):\n    pass\n", HERE: content}
    )
    assert outcome.code == 3
    assert [item.path for item in outcome.items("file")] == [HERE]
    assert {row.verdict for row in outcome.document.rows} == {"?"}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_module_that_nothing_imports_does_not_matter(content: str | bytes, audit: Audit) -> None:
    outcome = audit.tree({INIT: "from .nvidia import Draft\n", NOT_REACHED: content})
    assert (outcome.code, outcome.err) == (0, "")
    assert {row.verdict for row in outcome.document.rows} == {"yes?"}


def test_an_imported_module_that_cannot_be_read_leaves_the_answer_open(audit: Audit) -> None:
    tree = {INIT: "from . import broken\nfrom .nvidia import Draft\n", HERE: "def f(:\n"}
    run = audit.tree(tree)
    skipped = audit.tree(tree, "--no-imports")
    assert (run.code, {row.verdict for row in run.document.rows}) == (3, {"?"})
    assert (skipped.code, {row.verdict for row in skipped.document.rows}) == (0, {"yes?"})


def test_a_comment_that_is_not_utf_8_is_read_as_python_reads_it(audit: Audit) -> None:
    """CPython's own ``compile`` takes the bytes of such a file, and so does its import."""
    outcome = audit.tree({INIT: b"from .nvidia import Draft  # caf\xe9\n"})
    assert outcome.code == 0
    assert {row.evidence[2].text for row in outcome.document.rows} == {
        "from .nvidia import Draft  # caf\ufffd"
    }


@pytest.mark.parametrize(
    "constant",
    ['"\\ud800"', 'f"\\ud800{__name__}"', "10**40", f"-{2**63 + 1}", f"{2**64}", "-1e999"],
)
def test_a_constant_beyond_what_is_kept_is_no_problem(constant: str, audit: Audit) -> None:
    outcome = audit.tree({INIT: f"x = {constant}\nfrom .nvidia import Draft\n"})
    assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.parametrize(
    "nested",
    [
        "x = " + "+".join(["1"] * 700),
        "import torch\nx = torch" + ".b()" * 700,
        "x = 1\nif x == 2:\n    pass\n" + "elif x == 3:\n    pass\n" * 700,
    ],
    ids=["operators", "calls", "elif"],
)
def test_what_is_nested_deeper_than_people_write_is_read(nested: str, audit: Audit) -> None:
    outcome = audit.tree({INIT: f"{nested}\nfrom .nvidia import Draft\n"})
    assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.parametrize(
    "nested",
    [
        "import torch\nx = torch" + ".b()" * 5000,
        "x = 1\nif x == 2:\n    pass\n" + "elif x == 3:\n    pass\n" * 5000,
    ],
    ids=["calls", "elif"],
)
def test_what_is_nested_too_deeply_to_be_read_is_open(nested: str, audit: Audit) -> None:
    outcome = audit.tree({INIT: f"{nested}\nfrom .nvidia import Draft\n"})
    assert outcome.code == 3
    assert [item.path for item in outcome.items("file")] == [INIT]
    assert {row.verdict for row in outcome.document.rows} == {"?"}


def test_a_long_chain_of_operators_is_no_problem(audit: Audit) -> None:
    outcome = audit.tree({INIT: CHAIN + "from .nvidia import Draft\n"})
    assert outcome.code in (0, 3)
    assert outcome.code == 0 or [item.path for item in outcome.items("file")] == [INIT]


@pytest.mark.parametrize("line", ["x = 1\n", "# no code at all\n"], ids=["code", "comments"])
def test_a_source_file_of_fifty_megabytes_is_refused(line: str, audit: Audit) -> None:
    size = 50 * 2**20
    outcome = audit.tree({INIT: line * (size // len(line)) + "from .nvidia import Draft\n"})
    (item,) = outcome.items("file")
    assert (outcome.code, item.path) == (3, INIT)
    assert "MB" in item.reason or "MiB" in item.reason
    assert {row.verdict for row in outcome.document.rows} == {"?"}


# ---- circles -----------------------------------------------------------------------------------

CYCLE = {
    INIT: "from .one import One\n\nclass Draft(One):\n    pass\n",
    "vllm/models/draft/one.py": "from .two import Two\n\nclass One(Two):\n    pass\n",
    "vllm/models/draft/two.py": "from .one import One\n\nclass Two(One):\n    pass\n",
}


def test_a_base_class_in_a_cycle_is_the_import_error_of_python(audit: Audit) -> None:
    outcome = audit.tree(CYCLE)
    (error,) = {row.error.message for row in outcome.document.rows if row.error}
    assert outcome.code == 0
    assert "cannot import name 'One' from partially initialized module" in error


def test_a_base_class_in_a_cycle_is_open_when_imports_are_skipped(audit: Audit) -> None:
    outcome = audit.tree(CYCLE, "--no-imports")
    assert outcome.code == 3
    assert {(row.verdict, row.module) for row in outcome.document.rows} == {
        ("?", "vllm.models.draft")
    }
    assert all("leads back to the class" in (row.reason or "") for row in outcome.document.rows)


def test_a_class_that_is_its_own_base(audit: Audit) -> None:
    outcome = audit.tree({INIT: "class Draft(Draft):\n    pass\n"})
    (error,) = {(row.error.type, row.error.message) for row in outcome.document.rows if row.error}
    assert error == ("NameError", "name 'Draft' is not defined")


@pytest.mark.parametrize("bases", ["nn.Module, made()", "made()", "nn.Module, [made()]"])
def test_a_base_that_turns_out_to_be_a_list(bases: str, audit: Audit) -> None:
    """CPython refuses such a class; the other rows are answered, and no program is at fault."""
    text = f"""
import torch.nn as nn

def made():
    return []

class Draft({bases}):
    def compute_logits(self, hidden_states):
        return self.head(hidden_states)

    def get_top_tokens(self, hidden_states):
        return self.head(hidden_states)
"""
    outcome = audit.tree({INIT: text})
    assert outcome.code in (0, 1, 3)
    assert outcome.document.rows


def test_an_import_cycle_that_python_accepts(audit: Audit) -> None:
    outcome = audit.tree(
        {
            INIT: "from . import one\nfrom .one import Draft\n",
            "vllm/models/draft/one.py": "from . import two\nfrom .nvidia import Draft\n",
            "vllm/models/draft/two.py": "from . import one\n\ndef later():\n    return one.Draft\n",
        }
    )
    assert outcome.code == 0
    assert {row.verdict for row in outcome.document.rows} == {"yes?"}


def test_imports_nested_too_deeply_are_open(audit: Audit) -> None:
    names = [f"vllm/models/draft/m{number}.py" for number in range(400)]
    tree = {name: f"from .m{number} import Draft\n" for number, name in enumerate(names, 1)}
    outcome = audit.tree({**tree, names[-1]: "from .amd import Draft\n",
                          INIT: "from .m0 import Draft\n"})  # fmt: skip
    assert outcome.code == 3
    assert {row.verdict for row in outcome.document.rows} == {"?"}
    assert any("imports inside each other" in item.reason for item in outcome.items("condition"))


def test_functions_that_call_each_other_for_ever(audit: Audit) -> None:
    outcome = audit.tree(
        {
            INIT: "def a():\n    return b()\n\ndef b():\n    return a()\n\n"
            "if a():\n    from .nvidia import Draft\nelse:\n    from .amd import Draft\n"
        }
    )
    assert outcome.code == 3
    assert {row.verdict for row in outcome.document.rows} == {"?"}


# ---- nothing is executed ------------------------------------------------------------------------

TRAP = """
import pathlib, sys
pathlib.Path(__file__).with_name("executed").write_text("x")
open("executed", "w").close()
print("executed")
"""


def test_a_tree_that_would_write_files_writes_none(tmp_path: Path) -> None:
    traps: dict[str, str | bytes] = {path: TRAP + text for path, text in BASE.items()}
    table = "_SPECULATIVE_DECODING_MODELS = {'A': ('vllm.models.draft', 'Draft')}\n"
    traps |= {
        INIT: f"{TRAP}\nfrom .nvidia import Draft\n",
        REGISTRY: f"{TRAP}\n{table}",
        "setup.py": TRAP,
        "conftest.py": TRAP,
        "sitecustomize.py": TRAP,
        "pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'setup'\n",
        "vllm/sitecustomize.py": TRAP,
        "vllm/conftest.py": TRAP,
        "requirements/cuda.txt": "-r ../setup.py\n--index-url http://127.0.0.1:9\n",
    }
    tree = write(tmp_path / "tree", traps)
    before = snapshot(tmp_path)
    command = [sys.executable, "-c", "from auditor.main import audit; audit()", "--no-cache"]
    done = subprocess.run(
        [*command, "--vllm", "."],
        cwd=tree,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "executed" not in done.stdout
    assert snapshot(tmp_path) == before


# ---- files that a source leaves out ------------------------------------------------------------


DISPATCH = "from .nvidia import Draft\n"
#: A module that is asked for twice: what handles the first failure does not handle the second.
TWICE = {
    "vllm/models/draft/twice.py": """
        try:
            from .other import y
        except ImportError:
            y = 1
        from . import other
        """
}


@pytest.mark.parametrize(
    ("link", "given"),
    [
        (INIT, {}),
        ("vllm/models/draft/nvidia.py", {INIT: DISPATCH}),
        ("vllm/models/draft/other.py", {INIT: f"from . import other\n{DISPATCH}"}),
        ("vllm/models/draft/other.py", {INIT: f"import vllm.models.draft.other\n{DISPATCH}"}),
        ("vllm/models/draft/other", {INIT: f"from .other.deep import x\n{DISPATCH}"}),
        ("vllm/models/draft/other", {INIT: f"from .twice import y\n{DISPATCH}", **TWICE}),
    ],
    ids=["the module", "the class", "from", "import", "a folder", "twice"],
)  # fmt: skip
def test_a_module_that_was_left_out_is_not_taken_for_a_namespace(
    link: str, given: dict[str, str], audit: Audit
) -> None:
    """A link to itself is there for a person who looks, and nothing that can be read."""
    root = write(audit.folder / "tree", files(given))
    (root / link).unlink(missing_ok=True)
    (root / link).symlink_to(root / link)
    outcome = audit.spec(root, "--format", "json")
    (item,) = outcome.items("source")
    assert (outcome.code, item.path) == (3, link)
    assert {row.verdict for row in outcome.document.rows} == {"?"}
    for row in outcome.document.rows:
        assert f"{link} was left out of the source: {item.reason}" in (row.reason or "")


def test_a_module_that_was_left_out_does_not_matter_where_nothing_imports_it(audit: Audit) -> None:
    root = write(audit.folder / "tree", files({INIT: DISPATCH}))
    (root / "vllm/models/draft/other.py").symlink_to(root / "vllm/models/draft/other.py")
    outcome = audit.spec(root, "--format", "json")
    assert {row.verdict for row in outcome.document.rows} == {"yes?"}


def test_whether_a_module_that_was_left_out_can_be_found_is_open(audit: Audit) -> None:
    condition = 'find_spec("vllm.models.draft.other") is not None'
    tree = {INIT: f"from importlib.util import find_spec\nif {condition}:\n    {DISPATCH}"}
    root = write(audit.folder / "tree", files(tree))
    (root / "vllm/models/draft/other.py").symlink_to(root / "vllm/models/draft/other.py")
    outcome = audit.spec(root, "--format", "json")
    assert {row.verdict for row in outcome.document.rows} == {"?"}
