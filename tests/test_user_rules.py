"""``--rules DIR``: rules of a user laid over those of the project, and how they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees.minivllm import ARCHITECTURE, INIT, source, write

from auditor import main
from auditor.api import Request, Resources, audit
from auditor.coverage import from_json
from auditor.ruleset.capabilities import capability_names
from auditor.ruleset.files import rules_folder

Capture = pytest.CaptureFixture[str]

OWN = """name = "fold_weights"
summary = "weights are folded once they are loaded"
registry = "_SPECULATIVE_DECODING_MODELS"

valid = [
'''
class Draft(nn.Module):
    def fold_weights(self):
        pass
''',
]
invalid = [
'''
class Draft(nn.Module):
    pass
''',
]

[without]
does = "skips"
text = "the weights stay as they are"
"""
HAS = "class Draft:\n    def fold_weights(self):\n        pass\n"
PLATFORM = """name = "gaudi"
summary = "a platform of a user"
order = 90

[attributes]
device_type = "hpu"

[predicates]
is_cuda = false
is_rocm = false
is_hpu = true

[[examples]]
condition = "current_platform.is_hpu()"
is = "true"
"""


def _rules(tmp_path: Path, text: str, kind: str = "capabilities", name: str = "own.toml") -> Path:
    path = tmp_path / "own" / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return tmp_path / "own"


def _run(tmp_path: Path, *args: str) -> int:
    folder = write(tmp_path / "tree", {INIT: HAS})
    given = ["--vllm", str(folder), "-q", "--no-cache", "--platform", "rocm", *args]
    return main.run(main.command, given, "audit")


def _refused(tmp_path: Path, capsys: Capture, *folders: Path) -> str:
    given = [word for folder in folders for word in ("--rules", str(folder))]
    assert _run(tmp_path, *given) == 2
    return capsys.readouterr().err


def test_a_rule_of_a_user_is_one_like_those_of_the_project(tmp_path: Path, capsys: Capture) -> None:
    rules = str(_rules(tmp_path, OWN))
    assert _run(tmp_path, "--rules", rules, "-c", "fold_weights", "--format", "json") == 0
    document = from_json(capsys.readouterr().out.encode())
    assert {row.hasattr for row in document.rows} == {True}
    assert document.registry.endswith("registry._SPECULATIVE_DECODING_MODELS")
    assert document.question is not None
    assert document.question.text == "the weights stay as they are"
    assert "fold_weights" not in capability_names()


@pytest.mark.parametrize("before", [True, False])
def test_it_may_stand_on_either_side_of_the_subcommand(
    before: bool, tmp_path: Path, capsys: Capture
) -> None:
    rules = ["--rules", str(_rules(tmp_path, OWN))]
    command = ["explain", ARCHITECTURE, "-c", "fold_weights"]
    assert _run(tmp_path, *([*rules, *command] if before else [*command, *rules])) == 0
    assert "has it, as hasattr alone decides" in capsys.readouterr().out


def test_its_place_in_the_options_does_not_matter(tmp_path: Path) -> None:
    rules = str(_rules(tmp_path, OWN))
    assert _run(tmp_path, "-c", "fold_weights", "--rules", rules) == 0


def test_it_is_listed_with_the_others(tmp_path: Path, capsys: Capture) -> None:
    folder = write(tmp_path / "tree", {})
    given = ["capabilities", "--vllm", str(folder), "-q", "--rules", str(_rules(tmp_path, OWN))]
    assert main.run(main.command, given, "audit") == 0
    out = capsys.readouterr().out
    assert "fold_weights: weights are folded" in out
    assert "get_top_tokens: " in out


def test_a_platform_of_a_user_is_a_column(tmp_path: Path, capsys: Capture) -> None:
    rules = str(_rules(tmp_path, PLATFORM, "platforms"))
    assert _run(tmp_path, "--platform", "gaudi", "--rules", rules) == 0
    assert "gaudi: " in capsys.readouterr().out


def test_a_finding_may_be_reworded(tmp_path: Path, capsys: Capture) -> None:
    shipped = next((rules_folder() / "findings").glob("SD104*")).read_text("utf-8")
    text = shipped.replace('severity = "warning"', 'severity = "error"')
    assert text != shipped
    rules = str(_rules(tmp_path, text, "findings"))
    assert main.run(main.command, ["rules", "sd104", "--rules", rules], "audit") == 0
    assert capsys.readouterr().out.startswith("SD104 error: ")
    assert main.run(main.command, ["--rules", rules, "rules", "sd104"], "audit") == 0
    assert capsys.readouterr().out.startswith("SD104 error: ")
    assert main.run(main.command, ["rules", "sd104"], "audit") == 0
    assert capsys.readouterr().out.startswith("SD104 warning: ")


def test_several_folders_count_together(tmp_path: Path) -> None:
    one = _rules(tmp_path / "a", OWN)
    two = _rules(tmp_path / "b", OWN.replace("fold_weights", "unfold_weights"))
    given = ["--rules", str(one), "--rules", str(two)]
    assert _run(tmp_path, *given, "-c", "fold_weights") == 0
    assert _run(tmp_path, *given, "-c", "unfold_weights") == 0


def test_a_kept_answer_is_not_taken_for_that_of_other_rules(tmp_path: Path) -> None:
    tree = source({INIT: HAS})
    rules = _rules(tmp_path, OWN)
    asked = Request(capability="fold_weights", rules=(str(rules),), platforms=("rocm",))
    resources = Resources(cache=tmp_path / "cache", processes=1)
    first = audit(tree, asked, resources)
    assert audit(tree, asked, resources) == first
    _rules(tmp_path, OWN.replace('"skips"', '"raises"'))
    again = audit(tree, asked, resources)
    assert again.question is not None
    assert again.question.without == "raises"


# --- mistakes


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("summary =", "sumary =", 2, "`sumary`. Did you mean `summary`?"),
        ('does = "skips"', 'does = "sleeps"', 20, "`without.does`"),
        ('text = "the', 'txt = "the', 21, "`without.txt`. Did you mean `text`?"),
        ('registry = "', "registry = 3 # ", 3, "`registry`"),
        ('name = "fold_weights"', 'name = "get_top_tokens"', 1, "is taken by rules/capabilities"),
        ("[without]", "[without", 19, "not valid TOML"),
        ("def fold_weights", "def other", 5, "`valid[0]` does not hold: the rule does not fit it"),
        ("    pass\n''',\n]\n\n", "    fold_weights = 1\n''',\n]\n\n", 12, "`invalid[0]`"),
        ("class Draft(nn.Module):\n    pass", "import nowhere_at_all", 12, "`invalid[0]`"),
        ('does = "skips"', 'does = "skips"\npart = "x"', 21, "`without.part`"),
        ('"_SPECULATIVE_DECODING_MODELS"', "_NO_QUOTES", 3, "`registry`: not valid TOML"),
        ("summary =", 'name = "again"\nsummary =', 2, "`name`: not valid TOML"),
        ("''',\n]\ninvalid", "'',\n]\ninvalid", 14, "`valid`: not valid TOML"),
        ("summary = ", f"order = {'9' * 5000} # ", 2, "`order`: not valid TOML"),
        ('"_SPECULATIVE_DECODING_MODELS"', "[]", 3, "`registry` names no table"),
        ('"_SPECULATIVE_DECODING_MODELS"', '["_A", "a b"]', 3, "`registry[1]`: 'a b'"),
        ('"fold_weights"', '"fold,weights"', 1, "`name` 'fold,weights' cannot be asked for"),
        ('"fold_weights"', '"fold-weights"', 1, "Or say what is probed as `attribute`"),
        ("summary =", 'attribute = "a b"\nsummary =', 2, "`attribute`: 'a b'"),
        ("summary =", 'part = ""\nsummary =', 2, "`part`: ''"),
        ("summary =", 'agrees_with = "a.b"\nsummary =', 2, "`agrees_with`: 'a.b'"),
        ("summary =", 'mixin = "a-b"\nsummary =', 2, "`mixin`: 'a-b'"),
        ("[without]", '[guard]\nsearch = "/etc"\n\n[without]', 20, "`guard.search` must be"),
        ("[without]", '[verdicts]\nnope = "x"\n\n[without]', 20, "no verdict 'nope'"),
        ("[without]", '[verdicts]\nyes = "x"\nno = 1\n\n[without]', 21, "`verdicts.no`"),
    ],
)
def test_a_mistake_is_told_with_file_line_and_key(
    old: str, new: str, line: int, says: str, tmp_path: Path, capsys: Capture
) -> None:
    assert old in OWN
    rules = _rules(tmp_path, OWN.replace(old, new, 1))
    error = _refused(tmp_path, capsys, rules)
    assert f"own/capabilities/own.toml:{line}: " in error
    assert says in error


@pytest.mark.parametrize("key", ["valid", "invalid"])
def test_a_rule_without_examples_is_refused(key: str, tmp_path: Path, capsys: Capture) -> None:
    start = OWN.index(f"\n{key} = [")
    end = OWN.index("]\n", start) + 2
    error = _refused(tmp_path, capsys, _rules(tmp_path, OWN[:start] + "\n" + OWN[end:]))
    assert "a rule without examples" in error
    assert f"`{key}`" in error


def test_a_platform_without_examples_is_refused(tmp_path: Path, capsys: Capture) -> None:
    text = PLATFORM[: PLATFORM.index("[[examples]]")]
    assert "without examples" in _refused(tmp_path, capsys, _rules(tmp_path, text, "platforms"))


def test_a_condition_that_comes_out_otherwise_is_refused(tmp_path: Path, capsys: Capture) -> None:
    text = PLATFORM.replace('is = "true"', 'is = "false"')
    error = _refused(tmp_path, capsys, _rules(tmp_path, text, "platforms"))
    assert "platforms/own.toml:15: `examples[0]`: `current_platform.is_hpu()` is true" in error


def test_a_name_is_given_once_among_the_user_s_own(tmp_path: Path, capsys: Capture) -> None:
    _rules(tmp_path, OWN, name="a.toml")
    error = _refused(tmp_path, capsys, _rules(tmp_path, OWN, name="b.toml"))
    assert "own/capabilities/b.toml:1" in error
    assert "own/capabilities/a.toml" in error


def test_a_part_is_not_compared(tmp_path: Path, capsys: Capture) -> None:
    text = OWN.replace("valid = [", 'part = "model"\nagrees_with = "forward"\n\nvalid = [', 1)
    assert "`part` cannot be combined" in _refused(tmp_path, capsys, _rules(tmp_path, text))


def test_a_finding_that_no_check_makes_is_refused(tmp_path: Path, capsys: Capture) -> None:
    text = 'code = "SD999"\nseverity = "note"\nwhat = "w"\nwhy = "y"\nfix = "f"\n'
    assert "no check makes a finding" in _refused(
        tmp_path, capsys, _rules(tmp_path, text, "findings")
    )


@pytest.mark.parametrize(
    ("kind", "says"),
    [("capabilites", "Did you mean capabilities/?"), ("other", "capabilities/, findings/")],
)
def test_a_folder_that_says_no_kind_is_refused(
    kind: str, says: str, tmp_path: Path, capsys: Capture
) -> None:
    assert says in _refused(tmp_path, capsys, _rules(tmp_path, OWN, kind))


def test_a_folder_without_rules_or_none_at_all_is_refused(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty").mkdir()
    assert "holds no rule" in _refused(tmp_path, capsys, tmp_path / "empty")
    assert "there is no such folder" in _refused(tmp_path, capsys, tmp_path / "missing")


def _with(name: str, old: str, new: str, folder: str) -> str:
    text = (rules_folder() / folder / f"{name}.toml").read_text("utf-8")
    assert old in text
    return text.replace(f'name = "{name}"', 'name = "own"').replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("valid =", 'some_post = ["nope"]\nvalid =', "`some_post[0]`: 'nope' is none of"),
        ("head = [", 'head = ["((", ', "`head[0]`: '((' is not a pattern"),
        ("hidden = [", 'hidden = ["norm(_a)", ', "norm() takes 2 and is given 1"),
        ("hidden = [", 'hidden = ["other", ', "other is neither `param` nor begins with"),
    ],
)
def test_a_pattern_is_told_where_it_stands(
    old: str, new: str, says: str, tmp_path: Path, capsys: Capture
) -> None:
    text = _with("flat", old, new, "shapes")
    key = new.partition(" ")[0]
    line = next(n for n, one in enumerate(text.splitlines(), 1) if one.startswith(f"{key} ="))
    error = _refused(tmp_path, capsys, _rules(tmp_path, text, "shapes"))
    assert f"own/shapes/own.toml:{line}: " in error
    assert says in error


def test_a_shape_that_another_comes_before_is_told(tmp_path: Path, capsys: Capture) -> None:
    text = _with("flat", "valid =", "valid =", "shapes")
    error = _refused(tmp_path, capsys, _rules(tmp_path, text, "shapes"))
    assert "and the shape flat does" in error


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('"gaudi"', '"gau,di"', 1, "cannot be asked for"),
        ("is_hpu()", "is_hpu(", 14, "`examples[0].condition`"),
        ('is = "true"', 'is = "maybe"', 15, "`examples[0].is`: 'maybe' is none of"),
        ("is_hpu = true", 'is_hpu = "yes"', 11, "`predicates.is_hpu`"),
    ],
)
def test_a_mistake_in_a_platform_is_told_where_it_stands(
    old: str, new: str, line: int, says: str, tmp_path: Path, capsys: Capture
) -> None:
    error = _refused(tmp_path, capsys, _rules(tmp_path, PLATFORM.replace(old, new), "platforms"))
    assert f"own/platforms/own.toml:{line}: " in error
    assert says in error


def test_line_ends_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    rules = _rules(tmp_path, OWN)
    path = rules / "capabilities" / "own.toml"
    path.write_bytes(b"\xef\xbb\xbf" + OWN.replace("\n", "\r\n").encode())
    assert _run(tmp_path, "--rules", str(rules), "-c", "fold_weights") == 0


def test_what_is_no_text_is_refused(tmp_path: Path, capsys: Capture) -> None:
    rules = _rules(tmp_path, OWN)
    (rules / "capabilities" / "own.toml").write_bytes(b"# one\nname = '\xff'")
    assert "own.toml:2: cannot be read: byte 0xff is not UTF-8" in _refused(tmp_path, capsys, rules)


def test_a_table_that_the_release_does_not_have_is_told_with_those_it_has(
    tmp_path: Path, capsys: Capture
) -> None:
    rules = _rules(tmp_path, OWN.replace("_SPECULATIVE_DECODING_MODELS", "_OTHER_MODELS"))
    assert _run(tmp_path, "--rules", str(rules), "-c", "fold_weights") == 2
    error = capsys.readouterr().err
    assert "there is no table _OTHER_MODELS" in error
    assert "`registry` of the rule" in error
    assert "There are: _SPECULATIVE_DECODING_MODELS" in error
