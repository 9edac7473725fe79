"""``audit checkpoint`` over a mini tree: what it answers, and what it refuses."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from checkpoints.minitree import TREE
from trees.minivllm import source, write

from auditor.api import Request, Resources
from auditor.checkpoints import library as library_module
from auditor.checkpoints.answer import Answers
from auditor.checkpoints.document import json_schema
from auditor.checkpoints.engine import new_run
from auditor.checkpoints.reading import Given
from auditor.checkpoints.tables import Tables
from auditor.contracts.names import Names
from auditor.main import command, run
from auditor.modules import locate_modules
from auditor.program import Files

Capture = pytest.CaptureFixture[str]
Json = dict[str, Any]

ONE: Json = {
    "model_type": "one",
    "architectures": ["OneForCausalLM"],
    "num_nextn_predict_layers": 1,
}


class Checkpoint:
    """A mini tree, and what ``audit checkpoint`` says over it."""

    def __init__(self, folder: Path, capture: Capture) -> None:
        self.folder = folder
        self._capture = capture
        self._tree = write(folder / "tree", TREE)

    def file(self, config: object, name: str = "models/org/one/config.json") -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = config if isinstance(config, bytes) else json.dumps(config).encode()
        path.write_bytes(data)
        return str(path)

    def run(self, *args: str) -> tuple[int, str, str]:
        code = run(
            command, ["checkpoint", "--vllm", str(self._tree), "--no-cache", "-q", *args], "audit"
        )
        said = self._capture.readouterr()
        assert "Traceback" not in said.out + said.err
        return code, said.out, said.err

    def document(self, *args: str, code: int = 0) -> Json:
        ended, out, err = self.run("--format", "json", *args)
        assert ended == code, err
        document: Json = json.loads(out)
        jsonschema.Draft202012Validator(json_schema()).validate(document)
        return document

    def result(self, config: object, *args: str, code: int = 0) -> Json:
        (result,) = self.document(self.file(config), *args, code=code)["results"]
        assert isinstance(result, dict)
        return result

    def refused(self, *args: str) -> str:
        code, out, err = self.run(*args)
        assert (code, out) == (2, "")
        return err


@pytest.fixture
def checkpoint(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    # What a developer's environment happens to have must not decide.
    monkeypatch.setattr(library_module, "library_of", lambda _: library_module.NoLibrary())
    return Checkpoint(tmp_path, capsys)


def _verdicts(result: Json) -> dict[str, tuple[str, str | None]]:
    return {row["platform"]: (row["verdict"], row["class"]) for row in result["rows"]}


def test_the_override_names_the_draft_and_each_platform_its_class(checkpoint: Checkpoint) -> None:
    result = checkpoint.result(ONE, "-p", "cuda,rocm")
    assert (result["architecture"], result["n_predict"], result["model_type"]) == (
        "OneMTP", 1, "one_mtp",
    )  # fmt: skip
    assert (result["method"], result["asked"], result["error"]) == ("mtp", None, None)
    assert result["registered"] is True
    assert _verdicts(result) == {"cuda": ("no", "Draft"), "rocm": ("no", "Draft")}
    texts = [step["text"] for step in result["steps"]]
    assert "hf_config.model_type == 'one'" in texts
    assert all(step["path"].startswith("vllm/") and step["line"] > 0 for step in result["steps"])


def test_a_membership_in_a_text_stays_one(checkpoint: Checkpoint) -> None:
    """``x in ("pre_one")`` is a test of a part of a text."""
    assert checkpoint.result({**ONE, "model_type": "re_o"})["architecture"] == "OneMTP"
    assert checkpoint.result({**ONE, "model_type": 5}, code=0)["error"] == {
        "type": "TypeError",
        "message": "'in <string>' requires string as left operand, not int",
    }


def test_a_default_of_a_class_of_the_tree_counts(checkpoint: Checkpoint) -> None:
    result = checkpoint.result({"model_type": "one", "architectures": ["X"]})
    assert result["override"]["n_predict"] is None
    assert result["loaded"]["n_predict"] == result["n_predict"] == 2
    assert result["loaded"]["config_class"] == "OneConfig"


def test_what_the_tree_raises_is_shown_with_its_type(checkpoint: Checkpoint) -> None:
    result = checkpoint.result({**ONE, "num_nextn_predict_layers": -1})
    said = {"type": "ValueError", "message": "n_predict=-1 layers for OneForCausalLM"}
    assert result["error"] == result["override"]["error"] == said
    assert result["architecture"] is None
    assert result["rows"] == []
    strict = checkpoint.result({"model_type": "strict", "architectures": ["Spark"]})
    assert strict["error"] == {"type": "ValueError", "message": "no target_layer_ids"}
    assert strict["override"]["architecture"] == "Spark"


def test_a_nested_text_part_takes_the_place_of_the_wrapper(checkpoint: Checkpoint) -> None:
    config = {"model_type": "wrapper", "architectures": ["W"], "text_config": {"model_type": "t"}}
    result = checkpoint.result(config)
    assert (result["architecture"], result["registered"]) == ("OneNMTP", False)
    assert result["nearest"] == ["OneMTP"]
    assert result["rows"] == []


def test_the_method_is_read_off_the_path_and_the_type(checkpoint: Checkpoint) -> None:
    plain = {"model_type": "llama", "architectures": ["Llama"], "vocab_size": 9}
    path = checkpoint.file(plain, "org/EAGLE-Llama/config.json")
    (result,) = checkpoint.document(path)["results"]
    assert (result["method"], result["architecture"]) == ("eagle", "EagleLlama")
    assert result["after_eagle_config"] == "EagleLlama"
    assert result["model_type"] == "llama"
    assert set(_verdicts(result).values()) == {("yes?", "Draft")}
    named = checkpoint.result(plain, "--model", "org/eagle-x")
    assert named["method"] == "eagle"
    assert checkpoint.result(plain)["method"] == "draft_model"


def test_a_method_that_the_engine_refuses(checkpoint: Checkpoint) -> None:
    result = checkpoint.result({"model_type": "x", "architectures": ["X"]}, "--method", "mtp")
    assert result["refused"] == {
        "type": "NotImplementedError", "message": "Unsupported speculative method: 'mtp'",
    }  # fmt: skip
    assert (result["architecture"], result["error"]) == ("X", None)


def test_rewriting_after_the_method_is_settled(checkpoint: Checkpoint) -> None:
    config = {"model_type": "x", "architectures": ["Any"]}
    assert checkpoint.result(config, "--method", "dspark")["architecture"] == "Spark"


def test_an_independent_draft_is_looked_up_in_the_ordinary_tables(checkpoint: Checkpoint) -> None:
    config = {"model_type": "plain", "architectures": ["PlainForCausalLM"]}
    result = checkpoint.result(config, "--method", "draft_model", "-p", "rocm")
    assert result["registered"] is True
    assert result["table"].endswith("._TEXT_GENERATION_MODELS")
    assert _verdicts(result) == {"rocm": ("no", "Draft")}


def test_remarks_on_layers_families_and_shipped_code(checkpoint: Checkpoint) -> None:
    config = {**ONE, "num_nextn_predict_layers": 0, "dflash_config": {"a": 1}}
    result = checkpoint.result({**config, "auto_map": {"AutoConfig": "evil.Config"}})
    assert result["draft_layers"] == 0
    text = " ".join(result["remarks"])
    for part in ("ships no layers", "dflash_config (dflash)", "auto_map"):
        assert part in text


def test_what_transformers_alone_knows_is_a_gap(checkpoint: Checkpoint) -> None:
    result = checkpoint.result({"model_type": "llama"}, "--method", "eagle", code=3)
    assert (result["architecture"], result["error"]) == (None, None)
    assert any(gap["decides"] for gap in result["gaps"])
    assert "not installed" in result["loaded"]["gap"]
    assert result["override"]["error"]["type"] == "TypeError"


def test_what_is_not_followed_is_said_with_its_line(checkpoint: Checkpoint) -> None:
    config = {**ONE, "num_nextn_predict_layers": "x" * 3, "get_text_config": 1}
    result = checkpoint.result(config, code=3)
    assert result["architecture"] is None
    assert any("get_text_config" in gap["reason"] for gap in result["gaps"])


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"{", "is not JSON"),
        (b"[1]", "a list and not an object"),
        (b"null", "null and not an object"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "levels deep"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not JSON"),
        (b" " * (9 * 1024 * 1024), "larger than 8 MiB"),
        (b"", "is not JSON"),
    ],
)
def test_a_file_that_is_no_configuration(checkpoint: Checkpoint, data: bytes, part: str) -> None:
    assert part in checkpoint.refused(checkpoint.file(data))


def test_a_folder_without_one_a_missing_file_and_nothing(checkpoint: Checkpoint) -> None:
    (checkpoint.folder / "empty").mkdir()
    assert "has no config.json" in checkpoint.refused(str(checkpoint.folder / "empty"))
    assert "No such file" in checkpoint.refused(str(checkpoint.folder / "missing.json"))
    assert "no configuration is given" in checkpoint.refused()
    assert "--model" in checkpoint.refused("a", "b", "--model", "x")
    assert "--survey" in checkpoint.refused("a", "--survey", "b")


def test_an_interpreter_that_is_not_there(
    tmp_path: Path, capsys: Capture, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    said = checkpoint.refused(checkpoint.file(ONE), "--transformers", str(tmp_path / "nothing"))
    assert "--transformers" in said
    assert "there is no such interpreter" in said


def test_one_bad_file_does_not_lose_the_others(checkpoint: Checkpoint) -> None:
    good, bad = checkpoint.file(ONE), checkpoint.file(b"{", "models/org/two/config.json")
    document = checkpoint.document(good, bad, code=3)
    assert [one["name"] for one in document["results"]] == ["one"]
    assert [one["name"] for one in document["unreadable"]] == ["two"]
    code, out, err = checkpoint.run(good, bad)
    assert code == 3
    assert "OneMTP" in out
    assert "is not JSON" in err


def test_standard_input_and_a_folder(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text(json.dumps(ONE))
    with open(tmp_path / "in") as given:
        monkeypatch.setattr("sys.stdin", given)
        (result,) = checkpoint.document("-")["results"]
    assert (result["name"], result["architecture"]) == ("-", "OneMTP")
    folder = str(Path(checkpoint.file(ONE)).parent)
    assert checkpoint.document(folder)["results"][0]["architecture"] == "OneMTP"


def test_not_a_number_and_keys_that_stand_twice(checkpoint: Checkpoint) -> None:
    data = b'{"model_type":"one","architectures":["X"],"num_nextn_predict_layers":0,'
    result = checkpoint.result(data + b'"num_nextn_predict_layers":NaN}')
    assert result["n_predict"] == "nan"
    assert any("twice" in one for one in result["remarks"])
    assert any("not JSON" in one for one in result["remarks"])


def test_wrong_types_in_every_field_end_with_an_answer() -> None:
    names = _names()
    library = library_module.NoLibrary()
    tables = Tables(new_run(names, library), source(TREE), Request(), Resources())
    answers = Answers(names, library, tables)
    fields = (
        "architectures",
        "model_type",
        "num_nextn_predict_layers",
        "text_config",
        "vocab_size",
    )
    values: tuple[object, ...] = (None, True, 0, 1.5, "x", [], ["x"], [1], {}, {"a": 1}, [[]])
    for base in (ONE, {"model_type": "wrapper", "architectures": ["W"]}):
        for field, value in product(fields, values):
            given = Given("x", "org/x", {**base, field: value})
            result = answers.result(given, None)
            decided = result.architecture or result.error or result.refused
            assert decided or any(gap.decides for gap in result.gaps), (field, value)


def _names() -> Names:
    tree = source(TREE).tree
    return Names(Files(tree), locate_modules(sorted(tree.files()), {"vllm"})[0])


def test_a_survey_counts_each_state_for_each_platform(checkpoint: Checkpoint) -> None:
    checkpoint.file(ONE, "all/a/config.json")
    checkpoint.file({**ONE, "num_nextn_predict_layers": 0}, "all/b/config.json")
    checkpoint.file({"model_type": "x", "architectures": ["Any"]}, "all/c/config.json")
    checkpoint.file({"model_type": "y", "architectures": ["Llama"]}, "all/EAGLE-d.json")
    checkpoint.file({"bos": 1}, "all/generation.json")
    checkpoint.file(b"{", "all/c/tokenizer.json")
    document = checkpoint.document("--survey", str(checkpoint.folder / "all"), "-p", "rocm")
    states = {one["name"]: (one["state"], one["class"]) for one in document["survey"]}
    assert states == {
        "EAGLE-d": ("had", "vllm.models.has.Draft"),
        "a": ("blocked", "vllm.models.lacks.Draft"),
        "b": ("no draft layers", None),
        "c": ("not reached", None),
    }
    (summary,) = document["summary"]
    assert (summary["reached"], summary["had"], summary["blocked"]) == (2, 1, 1)
    assert summary["by_class"] == {"vllm.models.lacks.Draft": 1}
    code, out, _ = checkpoint.run("--survey", str(checkpoint.folder / "all"), "-p", "rocm")
    assert code == 0
    assert "rocm: 2 of 4 reach a draft class: 1 had it, 1 blocked" in out


def test_the_table_for_people(checkpoint: Checkpoint) -> None:
    code, out, _ = checkpoint.run(checkpoint.file(ONE), "-p", "rocm")
    assert code == 0
    for part in (
        "one: OneMTP",
        "mtp (chosen by vLLM)",
        "vllm.models.lacks.Draft",
        "speculative.py",
    ):
        assert part in out


def test_the_same_input_gives_the_same_bytes_and_no_absolute_path(checkpoint: Checkpoint) -> None:
    path = checkpoint.file(ONE)
    first, second = (checkpoint.run("--format", "json", path)[1] for _ in range(2))
    assert first == second
    assert str(checkpoint.folder) not in first


def test_the_schema_is_printed(checkpoint: Checkpoint, capsys: Capture) -> None:
    assert run(command, ["schema", "checkpoint"], "audit") == 0
    assert json.loads(capsys.readouterr().out)["title"] == "draftaudit checkpoint"
