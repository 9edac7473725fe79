"""Where a mistake in a rule file stands: its line and its key."""

from __future__ import annotations

import msgspec
import pytest

from auditor.errors import RuleError
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.lines import Key, line_of
from auditor.ruleset.parsing import read
from auditor.ruleset.platforms import PlatformRule
from auditor.ruleset.shapes import ShapeRule

TEXT = """# A comment with name = "x" in it.
name = "shape"
"quoted" = 1

valid = [
\'\'\'
name = "not this one"
[guard]
\'\'\',
]

[guard]
search = "vllm/v1/"
where.deep = 2

[[examples]]
condition = "a"

[[examples]]
# The second.
condition = "b"
is = "true"

[tables.inner]
key = 3
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("name",), 2),
        (("quoted",), 3),
        (("valid",), 5),
        (("valid", 0), 5),
        (("guard",), 12),
        (("guard", "search"), 13),
        (("guard", "absent"), 12),
        (("guard", "where", "deep"), 14),
        (("examples", 0, "condition"), 17),
        (("examples", 1), 19),
        (("examples", 1, "is"), 22),
        (("tables", "inner", "key"), 25),
        (("absent",), 1),
        ((), 1),
    ],
)
def test_a_key_is_found_on_its_line(key: tuple[Key, ...], line: int) -> None:
    assert line_of(TEXT, key) == line


def _mistake(text: str, type_: type[object]) -> RuleError:
    with pytest.raises(RuleError) as caught:
        read(text, type_, "own/rule.toml")
    return caught.value


CAPABILITY = """name = "x"
summary = "s"
registry = "_MODELS"

[without]
does = "skips"
text = "t"
"""


def test_a_rule_without_a_mistake_is_read() -> None:
    assert read(CAPABILITY, Capability, "own/rule.toml").probed == "x"


@pytest.mark.parametrize(
    ("old", "new", "line", "what", "next_step"),
    [
        ("summary", "sumary", 2, "unknown field `sumary`", "Did you mean `summary`?"),
        ("[without]", "[witout]", 5, "unknown field `witout`", "Did you mean `without`?"),
        ('text = "t"', 'txt = "t"', 7, "unknown field `without.txt`", "Did you mean `text`?"),
        ('text = "t"', "", 5, "missing required field `without.text`", "Add it."),
        ('"skips"', '"sleeps"', 6, "`without.does`: Invalid enum value 'sleeps'", ""),
        ('"_MODELS"', "7", 3, "`registry`: Expected `str | array`, got `int`", ""),
        ('"s"', '"s', 2, "not valid TOML", ""),
        ('name = "x"', 'name = "x"\nname = "y"', 2, "not valid TOML", ""),
    ],
)
def test_a_mistake_has_a_line_and_a_key(
    old: str, new: str, line: int, what: str, next_step: str
) -> None:
    error = _mistake(CAPABILITY.replace(old, new, 1), Capability)
    assert error.where == f"own/rule.toml:{line}"
    assert what in error.what
    assert next_step in error.next_step


def test_a_mistake_in_an_array_of_tables_is_found_in_its_item() -> None:
    text = """name = "p"
summary = "s"
order = 9
attributes = {}
predicates = {}

[[examples]]
condition = "a"
is = "true"

[[examples]]
condition = "b"
iss = "true"
"""
    error = _mistake(text, PlatformRule)
    assert error.where == "own/rule.toml:13"
    assert "examples[1].iss" in error.what
    assert error.next_step == "Did you mean `is`?"


def test_every_shipped_key_of_a_shape_is_known_to_the_hint() -> None:
    names = {field.encode_name for field in msgspec.structs.fields(ShapeRule)}
    error = _mistake("nothing = 1\n", ShapeRule)
    assert set(error.next_step.removeprefix("Known: ").removesuffix(".").split(", ")) == names
