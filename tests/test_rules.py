"""The files under ``rules/``: each is read, each example is run, and none is skipped."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from trees.minivllm import INIT, coverage, row_of

import auditor
from auditor.cost.estimate import Estimate, estimate
from auditor.cost.measurements import Example, Measurement, published
from auditor.errors import RuleError
from auditor.ruleset import files
from auditor.ruleset.capabilities import Capability, capabilities, capability
from auditor.ruleset.files import rules_folder
from auditor.ruleset.findings import finding_rules
from auditor.ruleset.platforms import PlatformExample, PlatformRule, platform_names, platforms
from auditor.ruleset.shapes import shapes

FILES = sorted(path.relative_to(rules_folder()).as_posix() for path in rules_folder().rglob("*"))
TOML = [name for name in FILES if name.endswith(".toml")]
EXAMPLES = [(rule, example) for rule in platforms() for example in rule.examples]
_HOLD_EXAMPLES = ("examples", "valid", "invalid")
DISPATCH = """
from vllm.platforms import current_platform
import os, sys

if {condition}:
    from .nvidia import Draft
else:
    from .amd import Draft
"""


STEPS = [(one, example) for one in published() for example in one.examples]


def _name(value: object) -> str:
    if isinstance(value, Measurement):
        return value.name
    if isinstance(value, Example):
        return f"{value.vocab_size}-{value.tp}-{value.batch}"
    if isinstance(value, PlatformRule):
        return value.name
    return value.condition if isinstance(value, PlatformExample) else str(value)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=_name)
def test_the_example_comes_out_as_the_rule_says(
    rule: PlatformRule, example: PlatformExample
) -> None:
    document = coverage({INIT: DISPATCH.format(condition=example.condition)})
    row = row_of(document, rule.name)
    found = {True: "true", False: "false", None: "undecided"}[row.hasattr]
    assert found == example.is_


@pytest.mark.parametrize(("measurement", "example"), STEPS, ids=_name)
def test_a_measurement_says_what_its_example_says(
    measurement: Measurement, example: Example
) -> None:
    series = measurement.for_((example.vocab_size, example.tp, "bfloat16"))
    said = estimate(series, example.batch) if series else Estimate("nothing")
    assert (said.effect, said.by) == (example.is_, example.by)


def test_every_measurement_has_examples_and_says_where_it_is_from() -> None:
    for measurement in published():
        assert {example.by for example in measurement.examples} >= {"measured", "nothing"}
        assert measurement.link.startswith("https://")
        assert measurement.hardware


def _examples_in(value: object) -> int:
    """How many examples a file holds, found without the types that read it."""
    if isinstance(value, list):
        return sum(map(_examples_in, value))
    if not isinstance(value, dict):
        return 0
    own = sum(len(value.get(key, ())) for key in _HOLD_EXAMPLES)
    return own + sum(
        _examples_in(inner) for key, inner in value.items() if key not in _HOLD_EXAMPLES
    )


def test_no_example_of_any_rule_file_is_skipped() -> None:
    held = {name: _examples_in(tomllib.loads((rules_folder() / name).read_text())) for name in TOML}
    run = {f"platforms/{rule.name}.toml": len(rule.examples) for rule in platforms()}
    run |= {f"shapes/{rule.name}.toml": len(rule.valid) + len(rule.invalid) for rule in shapes()}
    run |= {f"measurements/{one.name}.toml": len(one.examples) for one in published()}
    # Those of findings on plugins are run by test_plugin_findings.py.
    for rule in finding_rules():
        (name,) = [name for name in TOML if name.startswith(f"findings/{rule.code}")]
        run[name] = len(rule.valid) + len(rule.invalid)
    run |= {
        f"capabilities/{rule.name}.toml": len(rule.valid) + len(rule.invalid)
        for rule in capabilities()
    }
    run = {name: count for name, count in run.items() if count}
    assert {name: count for name, count in held.items() if count} == run


def test_every_platform_has_examples_of_each_outcome() -> None:
    for rule in platforms():
        assert {example.is_ for example in rule.examples} >= {"true", "false", "undecided"}


def test_nothing_but_toml_is_in_the_folder_and_all_of_it_is_read() -> None:
    kinds = {Path(name).suffix for name in FILES if (rules_folder() / name).is_file()}
    known = {f"platforms/{name}.toml" for name in platform_names()}
    assert kinds == {".toml"}
    assert {name for name in TOML if name.startswith("platforms/")} == known


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("name = 'x'\n", "missing required field `summary`", 1),
        (
            "name = 'x'\nsummary = 's'\nregistry = 'r'\ncolour = 'red'\n"
            "without = {does = 'skips', text = 't'}",
            "unknown field `colour`",
            4,
        ),
        ("name = 'x'\nsummary = 1\nregistry = 'r'\n", "Expected `str`, got `int`", 2),
        ("# a comment\n\nname = \n", "not valid TOML", 3),
    ],
)
def test_a_broken_rule_is_an_error_that_names_file_line_and_key(
    text: str, says: str, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rules" / "broken.toml"
    path.parent.mkdir()
    path.write_text(text)
    monkeypatch.setattr(files, "rules_folder", lambda: tmp_path / "rules")
    with pytest.raises(RuleError) as caught:
        files.load(path, Capability)
    assert says in caught.value.what
    assert caught.value.where == f"rules/broken.toml:{line}"


def test_an_unknown_capability_is_an_error() -> None:
    with pytest.raises(RuleError, match="no capability named 'get_nothing'"):
        capability("get_nothing")


def test_the_platforms_come_in_one_order_without_gaps() -> None:
    assert [rule.order for rule in platforms()] == list(range(len(platforms())))
    assert platform_names() == ("cuda", "rocm", "xpu", "cpu", "tpu", "oot")


def _named(rule: Capability) -> set[str]:
    """What a rule says that no code may know."""
    mixin = (rule.mixin or "").rpartition(".")[2]
    return {rule.name, rule.probed, rule.agrees_with or "", mixin} - {""}


def test_no_code_of_the_auditor_names_what_a_capability_is() -> None:
    words = {word for rule in capabilities() for word in _named(rule)}
    assert {"get_top_tokens", "compute_logits", "LocalArgmaxMixin", "set_skip_topk"} <= words
    for path in sorted((Path(auditor.__file__).parent).rglob("*.py")):
        text = path.read_text("utf-8")
        assert not [word for word in words if word in text], path


def test_the_rules_hold_no_answers() -> None:
    """Conventions of the project may name its modules; what a class has is read off the tree."""
    words = {"hasattr", "verdict", "architecture"}
    for name in TOML:
        text = (rules_folder() / name).read_text()
        keys = {line.partition("=")[0].strip() for line in text.splitlines()}
        assert not words & keys, name
