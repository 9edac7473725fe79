"""The docstring of the setting: that the saving is a trade, with a point where it breaks even.

The sentence that is added says what the two ways cost, so that a reader can tell on which side a
deployment stands. Every sentence that is there stays.
"""

from __future__ import annotations

import textwrap
from itertools import pairwise

import libcst as cst

from auditor.errors import UsageError
from auditor.ruleset.target import Flag
from auditor.sources.tree import Source
from auditor.values import Place
from codemods.edit import line_width
from codemods.parsed import Parsed
from codemods.plans import Refusal, Refused
from codemods.writing import Change

#: By these words the codemod knows its own work.
_MARK = "break-even"

_BY_HAND = "Nothing was changed. Edit the docstring by hand."

_TRADE = (
    "This is a trade with a break-even, not an unconditional saving: it replaces one all-gather of"
    " logits by an argmax on each rank and a gather of (value, index) pairs. At small batch sizes,"
    " small vocabularies or few ranks, the extra steps may cost more than the communication that"
    " they save, so measure both."
)


def flag_change(source: Source, rule: Flag | None) -> Change | None:
    """The change of the file that holds the setting; None where its docstring says so already.

    Raises:
        UsageError: the setting, or its docstring, is not there.
    """
    if rule is None:
        raise UsageError("no setting asks for this capability")
    module, _, name = rule.holder.rpartition(".")
    folder = module.replace(".", "/")
    files = source.tree.files()
    path = next((p for p in (f"{folder}.py", f"{folder}/__init__.py") if p in files), None)
    if path is None:
        raise _missing(f"there is no module {module}", source, rule)
    try:
        parsed = Parsed(path, source.tree.read(path))
        return _change(source, rule, parsed, name)
    except Refused as refused:
        place = refused.refusal.place or Place(path, 0)
        where = f"{place.path}:{place.line}" if place.line else place.path
        raise UsageError(refused.refusal.reason, where=where, next_step=_BY_HAND) from refused


def _missing(what: str, source: Source, rule: Flag, where: str = "") -> UsageError:
    step = (
        f"{source.label} has no {rule.name}: name a release that has it with --vllm, or leave out"
        " --flag-docstring."
    )
    return UsageError(what, where=where, next_step=step)


def _change(source: Source, rule: Flag, parsed: Parsed, name: str) -> Change | None:
    old = _docstring(source, rule, parsed, name)
    if _MARK in old.value:
        return None
    new = old.with_changes(value=_extended(old.value, parsed, line_width(source.tree)))
    result = parsed.module.deep_replace(old, new)
    assert isinstance(result, cst.Module)
    return Change(parsed.path, parsed.module.bytes, result.bytes)


def _docstring(source: Source, rule: Flag, parsed: Parsed, class_name: str) -> cst.SimpleString:
    """The string right after the annotated field of a class."""
    classes = [
        one
        for one in parsed.module.body
        if isinstance(one, cst.ClassDef) and one.name.value == class_name
    ]
    if not classes:
        raise _missing(f"there is no class {class_name}", source, rule, parsed.path)
    cls = classes[-1]
    where = Place(parsed.path, parsed.line(cls))
    for stmt, after in pairwise([*cls.body.body, None]):
        match stmt, after:
            case (
                cst.SimpleStatementLine(body=[cst.AnnAssign(target=cst.Name(value=name))]),
                cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() as text)]),
            ) if name == rule.name:
                return text
            case cst.SimpleStatementLine(body=[cst.AnnAssign(target=cst.Name(value=name))]), _ if (
                name == rule.name
            ):
                reason = f"{class_name}.{rule.name} has no docstring of one plain string"
                raise Refused(Refusal("not-editable", reason, where))
    raise _missing(f"{class_name} has no setting {rule.name}", source, rule, str(where))


def _extended(text: str, parsed: Parsed, width: int) -> str:
    """The docstring with the sentence as a paragraph of its own."""
    newline, indent = parsed.module.default_newline, parsed.module.default_indent
    quotes = '"""' if text.endswith('"""') else "'''"
    if not text.startswith(quotes) or not text.endswith(quotes):
        raise Refused(
            Refusal("not-editable", "the docstring of the setting is not in three quotes")
        )
    inner = text[3:-3].rstrip()
    lines = textwrap.wrap(_TRADE, width - len(indent), break_on_hyphens=False)
    if len(indent) + len(lines[-1]) + len(quotes) > width:
        lines = textwrap.wrap(_TRADE, width - len(indent) - len(quotes), break_on_hyphens=False)
    paragraph = newline.join(f"{indent}{line}" for line in lines)
    return f"{quotes}{inner}{newline}{newline}{paragraph}{quotes}"
