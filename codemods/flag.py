"""The docstring of the setting: that the saving is a trade, with a point where it breaks even.

The sentence that is added says what the two ways cost, so that a reader can tell on which side a
deployment stands. Every sentence that is there stays.
"""

from __future__ import annotations

import textwrap
from itertools import pairwise

import libcst as cst

from auditor.errors import UsageError
from auditor.rulesdata import Flag
from auditor.sources.tree import Source
from auditor.values import Place
from codemods.edit import line_width
from codemods.parsed import Parsed
from codemods.plans import Refusal, Refused
from codemods.writing import Change

#: By these words the codemod knows its own work.
_MARK = "break-even"

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
    try:
        return _change(source, rule)
    except Refused as refused:
        where = str(refused.refusal.place or "")
        raise UsageError(refused.refusal.reason, where=where) from refused


def _change(source: Source, rule: Flag | None) -> Change | None:
    if rule is None:
        raise Refused(Refusal("not-editable", "no setting asks for this capability"))
    module, _, name = rule.holder.rpartition(".")
    folder = module.replace(".", "/")
    path = next((p for p in (f"{folder}.py", f"{folder}/__init__.py")
                 if p in source.tree.files()), None)  # fmt: skip
    if path is None:
        raise Refused(Refusal("not-editable", f"there is no module {module}"))
    parsed = Parsed(path, source.tree.read(path))
    old = _docstring(parsed, name, rule.name)
    if _MARK in old.value:
        return None
    new = old.with_changes(value=_extended(old.value, parsed, line_width(source.tree)))
    result = parsed.module.deep_replace(old, new)
    assert isinstance(result, cst.Module)
    return Change(path, parsed.module.bytes, result.bytes)


def _docstring(parsed: Parsed, class_name: str, field: str) -> cst.SimpleString:
    """The string right after the annotated field of a class."""
    for cls in parsed.module.body:
        if not isinstance(cls, cst.ClassDef) or cls.name.value != class_name:
            continue
        body = list(cls.body.body)
        for stmt, after in pairwise(body):
            match stmt, after:
                case (
                    cst.SimpleStatementLine(body=[cst.AnnAssign(target=cst.Name(value=name))]),
                    cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() as text)]),
                ) if name == field:
                    return text
    raise Refused(
        Refusal("not-editable", f"{class_name}.{field} has no docstring", Place(parsed.path, 0))
    )


def _extended(text: str, parsed: Parsed, width: int) -> str:
    """The docstring with the sentence as a paragraph of its own."""
    newline, indent = parsed.module.default_newline, parsed.module.default_indent
    quotes = '"""' if text.endswith('"""') else "'''"
    if not text.startswith(quotes) or not text.endswith(quotes):
        raise Refused(Refusal("not-editable", "its docstring is not in three quotes", None))
    inner = text[3:-3].rstrip()
    lines = textwrap.wrap(_TRADE, width - len(indent), break_on_hyphens=False)
    if len(indent) + len(lines[-1]) + len(quotes) > width:
        lines = textwrap.wrap(_TRADE, width - len(indent) - len(quotes), break_on_hyphens=False)
    paragraph = newline.join(f"{indent}{line}" for line in lines)
    return f"{quotes}{inner}{newline}{newline}{paragraph}{quotes}"
