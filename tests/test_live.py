"""``audit --live`` over mini trees that really import: both answers, and every way it can fail.

The interpreter is the one that runs the tests, with an installation on its ``PYTHONPATH``. With
``DRAFTAUDIT_TEST_VLLM_PYTHON`` a real vLLM is asked as well.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from trees.minivllm import REGISTRY, WITH_METHOD, WITHOUT_METHOD, registry
from trees.running import ENTRIES, PLATFORM, install

from auditor.live.comparison import agrees, compared, differences
from auditor.live.document import Raised, Said, json_schema
from auditor.main import command, run

Capture = pytest.CaptureFixture[str]

#: What no reader of the files can see.
HIDDEN = WITHOUT_METHOD + "\nDraft.__init_subclass__.__self__.get_top_tokens = len\n"

BY_VARIABLE = """
import os
from vllm.models import lacking, own

Draft = (own if os.environ.get("VLLM_OWN") else lacking).Draft
"""


class Live:
    """An installation, and what ``audit --live`` says of it."""

    def __init__(self, folder: Path, capture: Capture, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._capture = capture
        self._patch = patch

    def install(self, given: dict[str, str] | None = None, **more: str) -> None:
        install(self.folder, given or {}, more)
        self._patch.setenv("PYTHONPATH", str(self.folder))

    def run(self, *args: str) -> tuple[int, str, str]:
        code = run(command, ["--no-cache", *(args or ("--live",))], "audit")
        said = self._capture.readouterr()
        return code, said.out, said.err

    def document(self, *args: str) -> tuple[int, dict[str, Any]]:
        code, out, err = self.run(*(args or ("--live",)), "--format", "json")
        assert out, err
        document = json.loads(out)
        jsonschema.Draft202012Validator(json_schema()).validate(document)
        return code, document

    def refused(self, *args: str) -> str:
        """What is said where the exit code is 2 and nothing is printed."""
        code, out, err = self.run(*args)
        assert (code, out) == (2, ""), err
        return err


@pytest.fixture
def live(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Live:
    monkeypatch.chdir(tmp_path)
    return Live(tmp_path / "installation", capsys, monkeypatch)


def _rows(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["architecture"]: row for row in document["rows"]}


def _outcomes(document: dict[str, Any]) -> dict[str, str]:
    return {row["architecture"]: row["outcome"] for row in document["rows"]}


NO_PACKAGE = "No module named 'torch.nn.absent'; 'torch.nn' is not a package"
AGREED = dict.fromkeys(ENTRIES, "agree")


# ---- both answers -------------------------------------------------------------------------------


def test_both_sides_agree_on_classes_owners_and_exceptions(live: Live) -> None:
    live.install()
    code, document = live.document()
    assert (code, document["differences"], _outcomes(document)) == (0, [], AGREED)
    rows = _rows(document)
    for row in rows.values():
        assert row["static"] == row["live"]
    assert rows["OwnModel"]["live"]["owner"] == "vllm.models.own.Draft"
    mixin = "vllm.model_executor.models.interfaces.LocalArgmaxMixin"
    assert rows["MixinModel"]["live"]["owner"] == mixin
    assert rows["DispatchedModel"]["live"]["class"] == "vllm.models.lacking.Draft"
    assert rows["LackingModel"]["live"]["hasattr"] is False
    assert rows["NoneModel"]["live"] == {
        "loads": True, "class": None, "hasattr": False, "owner": None, "error": None, "reason": None
    }  # fmt: skip
    missing = {"type": "ModuleNotFoundError", "message": "No module named 'absent'"}
    assert rows["GpuModel"]["live"]["error"] == missing
    assert rows["NamelessModel"]["live"]["error"]["type"] == "AttributeError"


def test_the_document_says_what_was_asked(live: Live) -> None:
    live.install()
    _, document = live.document()
    python = ".".join(map(str, sys.version_info[:3]))
    assert document["python"] == f"CPython {python}"
    assert document["platform"] == "cpu"
    assert {"torch", "torch.nn"} <= {*document["modules"]["present"]}
    assert {"absent", "absent.part"} <= {*document["modules"]["missing"]}
    assert str(live.folder) not in json.dumps(document)


def test_nothing_of_the_installation_is_imported_here(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = "import os\nopen(os.environ['SEEN'], 'a').write(f'{os.getpid()}\\n')\n"
    live.install({"vllm/__init__.py": note})
    seen = live.folder / "seen"
    monkeypatch.setenv("SEEN", str(seen))
    live.document("--live", "--arch", "OwnModel")
    (process,) = seen.read_text().split()
    assert int(process) != os.getpid()
    assert "vllm" not in sys.modules


def test_what_agrees_is_counted_and_what_fails_is_named_once(live: Live) -> None:
    live.install()
    code, out, err = live.run("--live", "--width", "100")
    assert code == 0
    assert "7 of 7 entries agree: 2 have get_top_tokens, 3 lack it, 2 cannot be loaded" in out
    assert "GpuModel: ModuleNotFoundError: No module named 'absent'" in out
    assert "OwnModel:" not in out
    assert "importing every draft model of vllm" in err


def test_a_difference_is_shown_in_full_and_ends_with_1(live: Live) -> None:
    live.install(HiddenModel=HIDDEN)
    code, document = live.document()
    assert code == 1
    assert _outcomes(document) == {**AGREED, "HiddenModel": "differ"}
    (first, second) = document["differences"]
    assert first == {
        "architecture": "HiddenModel", "what": "hasattr", "static": "false", "live": "true"
    }  # fmt: skip
    assert (second["what"], second["live"]) == ("owner", "vllm.models.hiddenmodel.Draft")
    code, out, _ = live.run("--live", "--width", "100")
    assert code == 1
    assert "HiddenModel: differ\n" in out
    said = [" ".join(line.split()) for line in out.splitlines()]
    assert "static vllm.models.hiddenmodel.Draft, lacks get_top_tokens" in said
    has = "has get_top_tokens from vllm.models.hiddenmodel.Draft"
    assert f"live vllm.models.hiddenmodel.Draft, {has}" in said
    assert "differs in hasattr, owner" in said
    assert "7 of 8 entries agree" in out
    assert "1 differ\n" in out


def test_what_the_files_leave_open_is_no_difference_and_ends_with_3(live: Live) -> None:
    live.install(OpenModel=BY_VARIABLE)
    code, document = live.document()
    assert (code, _outcomes(document)) == (3, {**AGREED, "OpenModel": "open"})
    code, out, _ = live.run("--live", "--width", "100")
    assert "1 cannot be compared" in out


def test_what_is_no_class_and_no_pair_is_told_as_such(live: Live) -> None:
    table = registry({"FunctionModel": ("vllm.models.function", "Draft")})
    pair = "_SPECULATIVE_DECODING_MODELS['OddModel'] = 'vllm.models.own'\n"
    live.install({REGISTRY: table + pair, "vllm/models/function.py": "Draft = len\n"})
    code, document = live.document()
    assert (code, _outcomes(document)) == (3, {"FunctionModel": "open", "OddModel": "open"})
    rows = _rows(document)
    assert rows["FunctionModel"]["live"]["reason"] == "it is a builtin_function_or_method, no class"
    assert rows["FunctionModel"]["live"]["hasattr"] is False
    assert rows["OddModel"]["live"]["reason"] == "the entry is not a pair of strings"


def test_a_variable_is_set_for_both_sides(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    live.install(OpenModel=BY_VARIABLE)
    code, document = live.document("--live", "--env", "VLLM_OWN=1")
    assert (code, _outcomes(document)) == (0, {**AGREED, "OpenModel": "agree"})
    assert _rows(document)["OpenModel"]["live"]["class"] == "vllm.models.own.Draft"
    monkeypatch.setenv("VLLM_OWN", "1")
    assert live.document()[1]["rows"] == document["rows"]


# ---- what the interpreter has beside it ---------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "error"),
    [
        ("import torch.absent", "No module named 'torch.absent'"),
        ("import torch.nn.absent", NO_PACKAGE),
        ("import outer.inner.module", None),
        ("import outer.inner.absent", "No module named 'outer.inner.absent'"),
        ("import vllm._C", "No module named 'vllm._C'"),
        ("import comparison", "No module named 'comparison'"),
        ("try:\n    import absent\nexcept ImportError:\n    import outer.inner.module", None),
    ],
)  # fmt: skip
def test_modules_are_there_for_the_files_exactly_where_the_interpreter_has_them(
    live: Live, imports: str, error: str | None
) -> None:
    live.install(Importing=f"{imports}\n{WITH_METHOD}")
    code, document = live.document()
    said = _rows(document)["Importing"]["live"]
    assert (said["error"] or {}).get("message") == error
    assert (code, document["differences"]) == (0, [])


def test_a_module_that_cannot_be_imported_fails_for_both(live: Live) -> None:
    live.install(
        Broken="import broken\n" + WITH_METHOD,
        Caught="try:\n    import broken\nexcept ImportError:\n    pass\n" + WITH_METHOD,
    )
    code, document = live.document()
    assert (code, document["differences"]) == (0, [])
    error = {"type": "ModuleNotFoundError", "message": "No module named 'absent'"}
    assert _rows(document)["Broken"]["static"]["error"] == error
    assert document["modules"]["failing"] == [{"module": "broken", "error": error}]
    assert "importing broken raises ModuleNotFoundError" in live.run("--live")[1]


def test_an_exception_of_a_class_that_is_not_pythons_fails_for_both(live: Live) -> None:
    beside = {"odd.py": "class Odd(Exception):\n    pass\n\nraise Odd('so')\n"}
    live.install(beside, Broken="import odd\n" + WITH_METHOD)
    code, document = live.document()
    assert (code, document["differences"]) == (0, [])
    assert _rows(document)["Broken"]["static"]["error"] == {"type": "Odd", "message": "so"}


# ---- processes that end -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "how"),
    [
        ("os._exit(3)", "the interpreter ended with exit code 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "the interpreter was ended by signal SIGKILL"),
        ("sys.stdout.write('last words\\n'); sys.stdout.flush(); os._exit(0)",
         "the interpreter ended with exit code 0, having printed last: last words"),
    ],
)  # fmt: skip
def test_an_import_that_ends_the_process_is_told_of_its_entry_alone(
    live: Live, ending: str, how: str
) -> None:
    ends = f"import os, signal, sys\n{ending}\n{WITH_METHOD}"
    live.install(Ending=ends, EndingToo=ends)
    code, document = live.document()
    assert code == 1
    assert _outcomes(document) == {**AGREED, "Ending": "differ", "EndingToo": "differ"}
    said = _rows(document)["Ending"]["live"]
    assert said["loads"] is False
    # What the modules before it printed is the last line otherwise.
    assert said["reason"].startswith(how)
    assert [one["what"] for one in document["differences"]] == ["loads", "loads"]
    assert how in live.run("--live", "--width", "200")[1]


def test_a_class_that_cannot_be_asked_is_told_of_its_entry_alone(live: Live) -> None:
    odd = """
        class Meta(type):
            def __getattr__(cls, name):
                raise OSError("not now")

        class Draft(metaclass=Meta):
            pass
        """
    live.install(Odd=odd)
    code, document = live.document()
    assert {k: v for k, v in _outcomes(document).items() if k != "Odd"} == AGREED
    assert "OSError: not now" in _rows(document)["Odd"]["live"]["reason"]
    assert code != 0


def test_an_import_that_never_ends_is_told_and_the_others_are_answered(live: Live) -> None:
    live.install(Hanging="import time\ntime.sleep(600)\n" + WITH_METHOD)
    code, document = live.document("--live", "--live-timeout", "6")
    assert (code, _outcomes(document)) == (3, {**AGREED, "Hanging": "open"})
    said = _rows(document)["Hanging"]["live"]
    assert said["loads"] is None
    assert said["reason"].startswith("the interpreter gave no answer for 6 s")


def test_what_an_import_starts_ends_with_it(live: Live) -> None:
    started = live.folder / "started"
    child = f"""
import subprocess, sys, time
process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open({str(started)!r}, "w") as file:
    file.write(str(process.pid))
time.sleep(600)
"""
    live.install(Hanging=child + WITH_METHOD)
    live.document("--live", "--live-timeout", "6", "--arch", "Hanging")
    state = Path(f"/proc/{started.read_text()}/stat")
    # A process that was ended and not yet collected by anyone is a zombie.
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


# ---- what cannot be asked -----------------------------------------------------------------------


def test_a_vllm_that_cannot_be_imported_is_an_error_with_its_last_line(live: Live) -> None:
    live.install({PLATFORM: "raise OSError('libtorch.so: no such file')\n"})
    err = live.refused("--live")
    assert "its vLLM cannot be imported: the interpreter ended with exit code 1" in err
    assert "OSError: libtorch.so: no such file" in err
    assert "See what it prints when it imports vLLM by itself." in err


def test_a_vllm_whose_import_never_ends_is_an_error(live: Live) -> None:
    live.install({PLATFORM: "import time\ntime.sleep(600)\n"})
    assert "gave no answer for 2 s" in live.refused("--live", "--live-timeout", "2")


def test_a_vllm_whose_import_ends_the_process_is_an_error(live: Live) -> None:
    live.install({PLATFORM: "import os\nos.kill(os.getpid(), 11)\n"})
    assert f"was ended by signal {signal.Signals(11).name}" in live.refused("--live")


def test_a_platform_that_is_not_known_is_an_error(live: Live) -> None:
    unspecified = """
        class Platform:
            def is_cpu(self):
                return False

            def is_unspecified(self):
                return True

        current_platform = Platform()
        """
    live.install({PLATFORM: unspecified})
    err = live.refused("--live")
    assert "its vLLM runs on no platform that is known here" in err
    assert "true: is_unspecified" in err


def test_an_interpreter_without_vllm_is_an_error(live: Live, tmp_path: Path) -> None:
    bare = _executable(tmp_path / "python", f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    err = live.refused("--live", str(bare))
    assert "no vllm is installed in this Python. Install vllm there" in err


def test_a_single_file_is_no_vllm(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    live.folder.mkdir()
    (live.folder / "vllm.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(live.folder))
    assert "is not the folder of a package" in live.refused("--live")


def test_the_current_folder_is_not_where_vllm_is_looked_for(live: Live, tmp_path: Path) -> None:
    install(tmp_path, {}, {})
    bare = _executable(tmp_path / "python", f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    assert "no vllm is installed in this Python" in live.refused("--live", str(bare))


def _executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_what_is_no_interpreter_is_an_error(live: Live, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "plain").touch()
    _executable(tmp_path / "quiet", "#!/bin/sh\nexit 0\n")
    _executable(tmp_path / "loud", "#!/bin/sh\necho not a snake\nexit 4\n")
    _executable(tmp_path / "garbage", "\x7fgarbage")
    for given, said in (
        ("absent-python", "there is no such interpreter"),
        ("no/python", "there is no such interpreter"),
        ("", "this names no interpreter"),
        ("empty", "this folder holds no interpreter"),
        ("plain", "this file cannot be run"),
        ("quiet", "ended with exit code 0. Check that it is a Python."),
        ("loud", "ended with exit code 4, having printed last: not a snake"),
        ("garbage", "cannot be started (Exec format error)"),
    ):
        assert said in live.refused("--live", given), given


def test_an_answer_that_cannot_be_read_is_an_error(live: Live, tmp_path: Path) -> None:
    _executable(tmp_path / "liar", '#!/bin/sh\necho nonsense >> "$3"\n')
    assert "its answer cannot be read" in live.refused("--live", "./liar")


def test_an_environment_a_file_and_a_name_are_interpreters(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.install()
    wrapper = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    _executable(tmp_path / "venv/bin/python", wrapper)
    monkeypatch.setenv("PATH", str(tmp_path / "venv/bin"), prepend=os.pathsep)
    for given in ("venv", "venv/bin/python", str(tmp_path / "venv"), "python"):
        code, _, err = live.run("--live", given, "--arch", "OwnModel")
        assert code == 0, err


# ---- options ------------------------------------------------------------------------------------


def test_a_platform_is_refused_unless_it_is_that_of_the_interpreter(live: Live) -> None:
    live.install()
    assert live.document("--live", "--platform", "cpu")[0] == 0
    err = live.refused("--live", "--platform", "cpu,rocm")
    assert "the interpreter runs on cpu, so it cannot be asked about rocm" in err


def test_only_the_architectures_asked_for_are_imported(live: Live) -> None:
    live.install(Ending="import os\nos._exit(3)\n")
    code, document = live.document("--live", "--arch", "O*", "--arch", "MixinModel")
    assert code == 0
    assert _outcomes(document) == {"OwnModel": "agree", "MixinModel": "agree"}
    err = live.refused("--live", "--arch", "OwnModel", "--arch", "OwnModle")
    assert "no architecture of vllm" in err
    assert "OwnModel" in err


@pytest.mark.parametrize(
    "args",
    [
        ["--vllm", "0.33.0"],
        ["--with", "triton"],
        ["--without", "triton"],
        ["--no-imports"],
        ["--only", "no"],
        ["--fail-on", "no"],
        ["--format", "csv"],
        ["--format", "markdown"],
        ["--format", "sarif"],
        ["--summary", "x"],
        ["--into", "x"],
        ["--live-timeout", "0"],
    ],
)
def test_options_that_mean_nothing_beside_it_are_refused(live: Live, args: list[str]) -> None:
    assert args[0] in live.refused("--live", *args)


def test_its_time_limit_alone_is_refused(live: Live) -> None:
    assert "has a meaning only with --live" in live.refused("--live-timeout", "3")


@pytest.mark.parametrize("after", [["explain", "OwnModel"], ["shape"]])
def test_it_has_no_meaning_for_a_subcommand(live: Live, after: list[str]) -> None:
    live.install()
    assert "--live has no meaning for" in live.refused("--live", "python", *after)


def test_its_schema_is_printed(capsys: Capture) -> None:
    assert run(command, ["schema", "live"], "audit") == 0
    assert json.loads(capsys.readouterr().out)["title"] == "draftaudit live"


# ---- the comparison -----------------------------------------------------------------------------

CLASS = Said(True, "m.A", True, "m.B")
ERROR = Said(False, error=Raised("ImportError", "no"))


@pytest.mark.parametrize(
    ("static", "live", "outcome", "what"),
    [
        (CLASS, CLASS, "agree", []),
        (CLASS, Said(True, "m.C", True, "m.B"), "differ", ["class"]),
        (CLASS, Said(True, "m.A", True, "m.C"), "differ", ["owner"]),
        (CLASS, Said(True, "m.A", False, None), "differ", ["hasattr", "owner"]),
        (CLASS, ERROR, "differ", ["loads"]),
        (ERROR, CLASS, "differ", ["loads"]),
        (ERROR, Said(False, error=Raised("ValueError", "no")), "differ", ["error type"]),
        (ERROR, Said(False, error=Raised("ImportError", "yes")), "differ", ["error message"]),
        (ERROR, Said(False, reason="it ended"), "differ", ["loads"]),
        (CLASS, Said(False, reason="it ended"), "differ", ["loads"]),
        (CLASS, Said(None, reason="no answer"), "open", []),
        (Said(None, reason="open"), CLASS, "open", []),
        (Said(None, reason="open"), ERROR, "open", []),
        (Said(True, "m.A", None, reason="open"), CLASS, "open", []),
        (Said(True, "m.C", None, reason="open"), CLASS, "differ", ["class"]),
        (None, CLASS, "differ", ["entry"]),
        (CLASS, None, "differ", ["entry"]),
        (None, Said(None, reason="not a pair of strings"), "open", []),
    ],
)
def test_what_differs_is_named_and_what_is_not_known_is_no_difference(
    static: Said | None, live: Said | None, outcome: str, what: list[str]
) -> None:
    (row,) = compared({"A": static} if static else {}, {"A": live} if live else {})
    assert row.outcome == outcome
    assert [one.what for one in differences(row)] == what


# ---- messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("static", "live", "same"),
    [
        ("No module named 'a'", "No module named 'a'", True),
        ("No module named 'a'", "No module named 'b'", False),
        ("cannot import name 'a' from 'b'", "cannot import name 'a' from 'b' (/x/b.py)", True),
        ("cannot import name 'a' from 'b'", "cannot import name 'a' from 'b' (/x (1)/b.py)", True),
        ("cannot import name 'a' from 'b'", "cannot import name 'a' from 'b' (unknown location)",
         True),
        ("cannot import name 'a' from 'b'", "cannot import name 'a' from 'c' (/x/c.py)", False),
        ("cannot import name 'a' from partially initialized module 'b' (most likely due to a "
         "circular import)",
         "cannot import name 'a' from partially initialized module 'b' (most likely due to a "
         "circular import) (/x/b.py)", True),
        ("needs … or newer", "needs 3.1 or newer", True),
        ("needs … or newer", "needs 3.1 or older", False),
        ("…", "anything", True),
        ("first … or second", "second", True),
        ("first … or second", "third", False),
        ("f'needs {version} here'", "needs 3.1 here", True),
        ("f'needs {version} here'", "needs 3.1 there", False),
        ("f'needs {version} here'", "f'needs {version} here'", True),
        ("'needs %s' % version", "needs 3.1", True),
        ("message(version)", "needs 3.1", True),
        ("flash-attn", "flash-attn", True),
        ("flash-attn", "flash-infer", False),
        ("lines and… lines", "lines and\nmore lines", True),
    ],
)  # fmt: skip
def test_messages_agree_as_far_as_the_files_spell_them(static: str, live: str, same: bool) -> None:
    assert agrees(static, live) is same


# ---- a real vLLM --------------------------------------------------------------------------------

VARIABLE = "DRAFTAUDIT_TEST_VLLM_PYTHON"
PYTHON = os.environ.get(VARIABLE)


@pytest.mark.slow
@pytest.mark.skipif(PYTHON is None, reason=f"{VARIABLE} names no interpreter with vLLM")
def test_a_real_vllm_says_what_its_files_say(live: Live) -> None:
    code, document = live.document("--live", str(PYTHON))
    assert document["differences"] == []
    assert (code, set(_outcomes(document).values())) == (0, {"agree"})
    loaded = [row for row in document["rows"] if row["live"]["loads"]]
    assert len(loaded) > 40
    assert {row["live"]["hasattr"] for row in loaded} == {True, False}


def test_the_probe_needs_nothing_of_this_project() -> None:
    from auditor.live.interpreter import PROBE

    isolated = [sys.executable, "-I", "-S", "-c", f"import runpy; runpy.run_path({str(PROBE)!r})"]
    subprocess.run(isolated, check=True)
