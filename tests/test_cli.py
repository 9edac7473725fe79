from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from reports.samples import PLATFORMS, document, eagle, mtp, named, open_row, v32

from auditor import main, options
from auditor.coverage import VERDICTS, Coverage, UndecidedItem, from_json
from auditor.errors import SourceError, UsageError
from auditor.request import Request
from codemods import cli as codemods_cli


@dataclass(frozen=True)
class FakeSource:
    label: str = "vllm 0.30.0"
    origin: str = "vllm-0.30.0.tar.gz"
    why: str = "given by --vllm"


@dataclass
class Engine:
    """Stands in for the sources and the audit: answers from one document, keeps what was asked."""

    coverage: Coverage
    specs: list[str | None] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    fail: BaseException | None = None
    opened: dict[str, Any] = field(default_factory=dict)

    def open_source(self, spec: str | None, **how: Any) -> FakeSource:
        self.specs.append(spec)
        self.opened = how
        if self.fail is not None:
            raise self.fail
        return FakeSource()

    def audit(self, source: FakeSource, request: Request, *_: object) -> Coverage:
        self.requests.append(request)
        names = request.platforms or self.coverage.platforms
        globs = request.architectures or ("*",)
        known = {row.architecture for row in self.coverage.rows}
        if not any(fnmatchcase(name, glob) for name in known for glob in globs):
            raise UsageError("no architecture matches", where="--arch")
        rows = tuple(
            row
            for row in self.coverage.rows
            if row.platform in names and any(fnmatchcase(row.architecture, g) for g in globs)
        )
        return msgspec.structs.replace(self.coverage, rows=rows, platforms=names)


def _coverage(*makers: Callable[[str], Any], **more: Any) -> Coverage:
    return document(*(make(name) for make in makers for name in PLATFORMS), **more)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    fake = Engine(_coverage(eagle, mtp, v32))
    api: Any = ModuleType("auditor.api")
    api.audit, api.Request, api.platform_names = fake.audit, Request, lambda: PLATFORMS
    api.Resources = lambda cache: cache
    opener: Any = ModuleType("auditor.sources.open")
    opener.open_source = fake.open_source
    monkeypatch.setitem(sys.modules, "auditor.api", api)
    monkeypatch.setitem(sys.modules, "auditor.sources.open", opener)
    monkeypatch.setenv("COLUMNS", "160")
    return fake


def audit(*args: str) -> int:
    return main.run(main.command, args, "audit")


Capture = pytest.CaptureFixture[str]


# ---- exit codes, one test a row of the table in the design ----------------------------------


@pytest.mark.usefixtures("engine")
def test_exit_0_when_everything_was_analysed(capsys: Capture) -> None:
    assert audit() == 0
    assert "DeepSeekMTPModel" in capsys.readouterr().out


@pytest.mark.usefixtures("engine")
def test_exit_1_when_a_row_has_a_verdict_of_fail_on() -> None:
    assert audit("--fail-on", "stub,unsafe") == 1
    assert audit("--fail-on", "stub") == 0
    assert audit("--fail-on", "unsafe", "--platform", "rocm") == 0


@pytest.mark.parametrize(
    "args",
    [
        ["--nonsense"],
        ["nonsense"],
        ["--format", "pdf"],
        ["--platform", "rcom"],
        ["--only", "maybe"],
        ["--fail-on", ""],
        ["--width", "3"],
        ["--env", "NAME"],
        ["--assume", "=true"],
        ["--assume", "capability == 9"],
        ["--with", "a", "--without", "a"],
        ["--arch", "Nope*"],
        ["--arch", "Eagle*", "--arch", "Nope*"],
        ["explain"],
        ["explain", "Nope"],
        ["explain", "DeepSeekMTPModel", "--format", "csv"],
        ["--arch", "x", "explain", "DeepSeekMTPModel"],
        ["--platform", "rocm", "schema"],
        ["-o", "no/such/folder/report.json"],
    ],
)
@pytest.mark.usefixtures("engine")
def test_exit_2_on_wrong_usage_with_one_error_line(args: list[str], capsys: Capture) -> None:
    assert audit(*args) == 2
    err = capsys.readouterr().err
    assert sum(line.startswith("error: ") for line in err.splitlines()) == 1
    assert "Traceback" not in err


def test_exit_2_when_the_source_cannot_be_read(engine: Engine, capsys: Capture) -> None:
    engine.fail = SourceError("no such\nfolder \x1b[31m", where="there", next_step="Look again.")
    assert audit("--vllm", "there") == 2
    captured = capsys.readouterr()
    assert captured.err == "error: there: no such folder \\x1b[31m. Look again.\n"
    assert captured.out == ""


@pytest.mark.parametrize("kind", ["file", "table", "source"])
def test_exit_3_when_input_could_not_be_analysed(kind: Any, engine: Engine) -> None:
    item = UndecidedItem(kind, "vllm/a.py", 1, "", "broken")
    engine.coverage = _coverage(mtp, undecided=(item,))
    assert audit() == 3


def test_exit_3_when_a_cell_is_undecided(engine: Engine) -> None:
    engine.coverage = _coverage(mtp, open_row)
    assert audit() == 3
    assert audit("--only", "no") == 3
    assert audit("--platform", "rocm", "--format", "json") == 3
    assert audit("explain", "MiMoMTPModel") == 3
    assert audit("explain", "DeepSeekMTPModel") == 0


def test_an_open_condition_that_no_cell_depends_on_is_no_3(engine: Engine) -> None:
    item = UndecidedItem("condition", "vllm/a.py", 1, "if X:", "X is not known")
    engine.coverage = _coverage(mtp, undecided=(item,))
    assert audit() == 0


def test_1_wins_over_3(engine: Engine) -> None:
    engine.coverage = _coverage(mtp, open_row)
    assert audit("--fail-on", "no") == 1
    assert audit("--fail-on", "?") == 1


def test_exit_70_on_a_bug_with_the_traceback(engine: Engine, capsys: Capture) -> None:
    engine.fail = ZeroDivisionError("of ours")
    assert audit() == 70
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("error: this is a bug in draftaudit")


def test_exit_130_when_interrupted(engine: Engine, capsys: Capture) -> None:
    engine.fail = KeyboardInterrupt()
    assert audit() == 130
    assert capsys.readouterr().err.strip() == "error: interrupted"


# ---- what is printed where ------------------------------------------------------------------

SOURCE_LINE = "vllm 0.30.0 from vllm-0.30.0.tar.gz (given by --vllm)\n"


@pytest.mark.usefixtures("engine")
def test_the_first_line_of_the_table_says_which_source_was_taken(capsys: Capture) -> None:
    audit()
    captured = capsys.readouterr()
    assert captured.out.startswith(SOURCE_LINE)
    assert captured.err == ""


@pytest.mark.parametrize("form", ["json", "markdown", "csv"])
@pytest.mark.usefixtures("engine")
def test_machine_formats_say_it_on_stderr(form: str, capsys: Capture) -> None:
    audit("--format", form)
    captured = capsys.readouterr()
    assert captured.err == SOURCE_LINE
    assert SOURCE_LINE not in captured.out


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.usefixtures("engine")
def test_quiet_does_not_say_it(form: str, capsys: Capture) -> None:
    audit("--quiet", "--format", form)
    captured = capsys.readouterr()
    assert SOURCE_LINE not in captured.out + captured.err


@pytest.mark.usefixtures("engine")
def test_no_color_codes_when_stdout_is_no_terminal(capsys: Capture) -> None:
    audit()
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "env", "colored"),
    [([], "", True), (["--no-color"], "", False), ([], "1", False), (["-o", "x"], "", False)],
)
def test_color_on_a_terminal(
    args: list[str], env: str, colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", env)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    asked = options.Options(no_color="--no-color" in args, output="x" if "-o" in args else None)
    assert asked.in_color is colored


@pytest.mark.usefixtures("engine")
def test_width_is_respected(capsys: Capture) -> None:
    audit("--width", "80")
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_a_terminal_that_cannot_write_a_dash_gets_a_hyphen(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with open(tmp_path / "out", "w", encoding="ascii") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert audit() == 0
    assert " -\n" in (tmp_path / "out").read_text()


# ---- options --------------------------------------------------------------------------------


def test_options_become_the_request(engine: Engine) -> None:
    audit(
        *("--vllm", "0.30.0", "--platform", "rocm,xpu", "--platform", "rocm", "--arch", "Eagle*"),
        *("--assume", "capability == 9=true", "--env", "A=b=c", "--no-imports"),
        *("--with", "flashinfer", "--without", "deep_gemm"),
        *("--capability", "set_skip_topk", "--registry", "multimodal", "--registry", "text"),
        *("--override", "Draft=package.module:Class"),
    )
    assert engine.specs == ["0.30.0"]
    assert engine.requests == [
        Request(
            platforms=("rocm", "xpu"),
            architectures=("Eagle*",),
            assume={"capability == 9": "true"},
            env={"A": "b=c"},
            run_imports=False,
            with_modules=("flashinfer",),
            without_modules=("deep_gemm",),
            capability="set_skip_topk",
            registry=("multimodal", "text"),
            overrides={"Draft": "package.module:Class"},
        )
    ]


@pytest.mark.parametrize(
    "args",
    [
        ["--vllm", "x", "--platform", "rocm", "explain", "DeepSeekMTPModel"],
        ["explain", "DeepSeekMTPModel", "--platform", "rocm", "--vllm", "x"],
        ["--vllm", "y", "--platform", "rocm", "explain", "DeepSeekMTPModel", "--vllm", "x"],
    ],
)
def test_options_work_before_and_after_the_subcommand(args: list[str], engine: Engine) -> None:
    assert audit(*args) == 0
    assert engine.specs == ["x"]
    assert engine.requests[0].platforms == ("rocm",)


def test_repeatable_options_before_and_after_add_up(engine: Engine) -> None:
    audit("--env", "A=1", "explain", "DeepSeekMTPModel", "--env", "B=2")
    assert engine.requests[0].env == {"A": "1", "B": "2"}


def test_an_empty_spec_is_passed_on_and_not_taken_for_none(engine: Engine) -> None:
    audit("--vllm", "", "explain", "DeepSeekMTPModel")
    assert engine.specs == [""]


@pytest.mark.parametrize(
    ("args", "folder"), [(["--cache-dir", "x"], Path("x")), (["--no-cache"], None)]
)
def test_cache_options(args: list[str], folder: Path | None, engine: Engine) -> None:
    audit(*args)
    assert engine.opened["cache"].folder == folder


@pytest.mark.usefixtures("engine")
def test_an_unknown_platform_names_the_nearest(capsys: Capture) -> None:
    audit("--platform", "rcom")
    assert "Did you mean rocm?" in capsys.readouterr().err


@pytest.mark.parametrize("args", [["explain", "eaglellamaforcausallm"], ["--arch", "EagleLama*"]])
@pytest.mark.usefixtures("engine")
def test_an_unknown_architecture_names_the_nearest(args: list[str], capsys: Capture) -> None:
    assert audit(*args) == 2
    assert "Did you mean EagleLlamaForCausalLM?" in capsys.readouterr().err


def test_glob_characters_in_an_explained_name_match_nothing_else(engine: Engine) -> None:
    assert audit("explain", "*") == 2


@pytest.mark.usefixtures("engine")
def test_only_filters_rows_of_json_and_csv_exactly(capsys: Capture) -> None:
    audit("--only", "import,unsafe", "--format", "json")
    rows = from_json(capsys.readouterr().out.encode()).rows
    assert {row.verdict for row in rows} == {"import", "unsafe"}
    audit("--only", "unsafe", "--format", "csv", "--quiet")
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.usefixtures("engine")
def test_only_keeps_whole_rows_of_the_table(capsys: Capture) -> None:
    audit("--only", "unsafe")
    out = capsys.readouterr().out
    assert "DeepseekV32MTPModel" in out
    assert "DeepSeekMTPModel" not in out


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
@pytest.mark.usefixtures("engine")
def test_only_without_a_match_says_so(form: str, capsys: Capture) -> None:
    assert audit("--only", "stub", "--format", form) == 0
    captured = capsys.readouterr()
    assert "stub" in captured.out + captured.err


def test_csv_says_on_stderr_that_something_was_not_decided(engine: Engine, capsys: Capture) -> None:
    engine.coverage = named("x")
    audit("--format", "csv", "--quiet", "--platform", "cuda")
    assert capsys.readouterr().err == "not decided: 1; --format json lists them\n"


@pytest.mark.usefixtures("engine")
def test_explain_as_json_has_the_rows_of_that_architecture(capsys: Capture) -> None:
    assert audit("explain", "DeepSeekMTPModel", "--format", "json", "--platform", "rocm") == 0
    rows = from_json(capsys.readouterr().out.encode()).rows
    assert [(row.architecture, row.platform) for row in rows] == [("DeepSeekMTPModel", "rocm")]


def test_the_findings_are_listed_and_each_is_explained(capsys: Capture) -> None:
    assert audit("rules", "--width", "200") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines][:2] == [["SD101", "error"], ["SD102", "warning"]]
    assert audit("rules", "sd101", "--width", "200") == 0
    told = capsys.readouterr().out
    assert told.startswith("SD101 error: ")
    assert [word for word in ("why ", "fix ", "see https://") if word not in told] == []
    assert audit("rules", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)[0].keys() == {
        "code", "severity", "what", "why", "fix", "link",
    }  # fmt: skip


@pytest.mark.parametrize("args", [["rules", "SD999"], ["rules", "--format", "csv"]])
def test_wrong_usage_of_rules(args: list[str], capsys: Capture) -> None:
    assert audit(*args) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_schema_is_printed(capsys: Capture) -> None:
    assert audit("schema") == 0
    assert json.loads(capsys.readouterr().out)["$schema"].endswith("2020-12/schema")


@pytest.mark.parametrize("document", ["coverage", "live", "drift"])
def test_each_document_has_a_schema_of_its_own(document: str, capsys: Capture) -> None:
    assert audit("schema", document) == 0
    assert json.loads(capsys.readouterr().out)["title"] == f"draftaudit {document}"


# ---- output files ---------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_a_report_replaces_a_file_and_keeps_its_mode(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    target.chmod(0o640)
    assert audit("--format", "json", "-o", str(target)) == 0
    assert from_json(target.read_bytes()).rows
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("engine")
def test_a_new_report_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    audit("-o", str(tmp_path / "report"))
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


@pytest.mark.usefixtures("engine")
def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    audit("--format", "json", "-o", str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert from_json((tmp_path / "real").read_bytes()).rows


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="needs a device file")
@pytest.mark.usefixtures("engine")
def test_a_device_is_written_to_and_not_replaced() -> None:
    assert audit("-o", "/dev/null") == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.usefixtures("engine")
def test_a_failed_write_leaves_the_old_file_and_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    target = tmp_path / "report"
    target.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert audit("-o", str(target)) == 2
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]
    assert "report: cannot be written: No space left on device" in capsys.readouterr().err


@pytest.mark.usefixtures("engine")
def test_a_folder_is_no_output_file(tmp_path: Path) -> None:
    assert audit("-o", str(tmp_path)) == 2


# ---- help, version, start-up ----------------------------------------------------------------


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("before", [[], ["explain"], ["schema"]])
def test_help(flag: str, before: list[str], capsys: Capture) -> None:
    assert audit(*before, flag) == 0
    assert "Usage: audit" in capsys.readouterr().out


def test_help_names_every_verdict_and_exit_code(capsys: Capture) -> None:
    audit("--help")
    out = capsys.readouterr().out
    verdicts = next(line for line in out.splitlines() if "Verdicts:" in line)
    assert verdicts.split()[1:] == list(VERDICTS)
    assert all(f"\n    {code:>3}  " in out for code in (0, 1, 2, 3, 70, 130))


@pytest.mark.parametrize("group", [main.command, codemods_cli.codemod, codemods_cli.group])
def test_version(group: Any, capsys: Capture) -> None:
    assert main.run(group, ["--version"], "any") == 0
    assert capsys.readouterr().out.startswith("draftaudit ")


@pytest.mark.parametrize("args", [[], ["--help"]])
def test_codemod_says_what_it_can_do(args: list[str], capsys: Capture) -> None:
    assert main.run(codemods_cli.codemod, args, "codemod") == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in ("list", "apply", "check", "recover"))
    assert all(f"\n    {code:>3}  " in out for code in (0, 1, 2, 3, 130))


@pytest.mark.parametrize("args", [[], ["--help"], ["codemod"], ["audit", "--help"]])
def test_draftaudit_holds_both_groups(args: list[str], capsys: Capture) -> None:
    assert main.run(codemods_cli.group, args, "draftaudit") == 0
    assert "Usage: draftaudit" in capsys.readouterr().out


def test_draftaudit_audit_is_audit(engine: Engine) -> None:
    args = ["audit", "--platform", "rocm", "explain", "DeepSeekMTPModel"]
    assert main.run(codemods_cli.group, args, "draftaudit") == 0
    assert engine.requests[0].platforms == ("rocm",)
    assert main.run(codemods_cli.group, ["audit", "--fail-on", "no"], "draftaudit") == 1


HEAVY = {"rich", "libcst", "msgspec", "dulwich", "unearth", "pip", "packaging", "platformdirs"}


@pytest.mark.parametrize("entry", ["auditor.main:command", "codemods.cli:group"])
def test_help_imports_nothing_heavy(entry: str) -> None:
    module, _, name = entry.partition(":")
    code = (
        f"import sys; from auditor.main import run; from {module} import {name} as command\n"
        "run(command, ['--help'], 'x')\n"
        "print('\\n'.join(sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "auditor.cli" in loaded
    assert not HEAVY & {line.partition(".")[0] for line in loaded.splitlines()}


def test_a_process_ends_as_its_command_did(tmp_path: Path) -> None:
    """It ends without taking itself apart, and yet everything that it wrote is there."""
    code = (
        "import atexit, sys; from auditor import main, reporting\n"
        "atexit.register(print, 'taken apart')\n"
        "reporting.report = lambda options: print('x' * 100_000) or {code}\n"
        "sys.argv = ['audit']; main.audit()"
    )
    for ends, apart in ((0, False), (1, False), (3, False), (2, True), (70, True)):
        command = [sys.executable, "-c", code.replace("{code}", str(ends))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == ends
        assert done.stdout == "x" * 100_000 + "\n" + ("taken apart\n" if apart else "")


BROKEN_PIPE = """
import sys
from auditor import main, reporting
reporting.report = lambda options: reporting.deliver("line\\n" * 200_000, options) or {code}
sys.argv = ["audit", *{args!r}]
main.audit()
"""


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX pipes")
@pytest.mark.parametrize("args", [[], ["--format", "json"]])
@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_closed_pipe_ends_quietly_with_the_code_of_the_audit(args: list[str], code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BROKEN_PIPE.format(code=code, args=args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process, process.stderr as stderr:
        process.stdout.readline()
        process.stdout.close()
        assert stderr.read() == b""
        assert process.wait() == code


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX pipes")
def test_help_into_a_closed_pipe_is_no_finding() -> None:
    read, write = os.pipe()
    os.close(read)
    code = "from auditor import main; main.audit()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_shape_takes_an_architecture_or_none(capsys: Capture, engine: Engine) -> None:
    assert audit("shape", "--quiet") == 0
    assert "head paths, 0 families" in capsys.readouterr().out
    assert audit("shape", "DeepSeekMTPModel", "--format", "json", "--quiet") == 0
    assert json.loads(capsys.readouterr().out)["families"] == []
    assert engine.requests[-1].architectures == ("DeepSeekMTPModel",)
    assert audit("shape", "--format", "csv") == 2
    assert audit("--only", "no", "shape") == 2
