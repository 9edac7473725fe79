"""What ``codemod list`` and ``codemod apply`` print: functions of a plan."""

from __future__ import annotations

import json
from collections.abc import Sequence

from auditor.reports.rows import place
from auditor.values import Place
from codemods.plans import (
    REFUSALS,
    AddMethod,
    AddMixin,
    Derivation,
    Edit,
    Family,
    Item,
    PassArgument,
    Plan,
)

SCHEMA_VERSION = "1.1"

_Json = dict[str, object]


def as_json(plan: Plan, patches: bool = False) -> str:
    """The plan as JSON: every item, and with ``patches`` the diffs."""
    document: _Json = {
        "schema_version": SCHEMA_VERSION,
        "capability": plan.before.capability,
        "source": {"label": plan.before.source.label, "version": plan.before.source.version},
        "items": [_item(item) for item in plan.items],
        "proof": {"audit": "patched tree, in memory", "apply": plan.applied_by or None},
        "undecided": [
            {"architecture": row.architecture, "platform": row.platform, "reason": row.reason}
            for row in plan.undecided
        ],
        "unproven": [
            {"architecture": r.architecture, "platform": r.platform, "verdict": r.verdict}
            for r in plan.unproven
        ],
        "unread": [
            {"path": one.path, "line": one.line, "reason": one.reason} for one in plan.unread
        ],
    }
    if patches:
        document["patches"] = [_patch(family) for family in plan.families]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _item(item: Item) -> _Json:
    document: _Json = {
        "architecture": item.architecture,
        "platforms": list(item.platforms),
        "class": item.cls,
    }
    match item.outcome:
        case Derivation() as derived:
            return document | {
                "action": derived.action,
                "form": derived.form,
                "code": None,
                "reason": None,
                "files": list(derived.files),
                "patch": item.family,
                "term": derived.term,
                "brief": derived.brief,
                "place": _place_of(derived.place),
                "why": derived.why,
                "edits": [_edit(edit) for edit in derived.edits],
            }
        case refusal:
            return document | {
                "action": "refused",
                "code": refusal.code,
                "reason": refusal.reason,
                "meaning": REFUSALS[refusal.code],
                "files": [],
                "place": _place_of(refusal.place),
            }


def _place_of(where: Place | None) -> _Json | None:
    return None if where is None else {"path": where.path, "line": where.line}


def _edit(edit: Edit) -> _Json:
    site: _Json = {
        "class": edit.site.qualname,
        "path": edit.site.path,
        "line": edit.site.line,
    }
    match edit:
        case PassArgument(line=line, column=column, keyword=keyword, value=value):
            place: _Json = {"line": line, "column": column + 1}
            return {"kind": "argument", **site, **place, "argument": f"{keyword}={value}"}
        case AddMixin(mixin=mixin):
            return {"kind": "mixin", **site, "mixin": mixin}
        case AddMethod(factor=factor):
            return {
                "kind": "method",
                **site,
                "method": edit.name,
                "after": {"path": edit.origin.path, "line": edit.line, "method": edit.source},
                "calls": [
                    {"kind": s.kind, "line": s.line, "column": s.column + 1} for s in edit.spots
                ],
                "factored": factor.name if factor is not None else None,
            }


def _patch(family: Family) -> _Json:
    return {
        "name": family.name,
        "architectures": list(family.architectures),
        "files": sorted(family.after),
        "diff": family.diff.decode("utf-8", "replace"),
    }


def as_text(plan: Plan) -> str:
    """The plan for a person: one block an item."""
    lines: list[str] = []
    width = max((len(item.architecture) for item in plan.items), default=0)
    for item in plan.items:
        lines.append(f"{item.architecture:<{width}}  {_what(item)}  ({', '.join(item.platforms)})")
        lines.extend(f"    {line}" for line in _details(item))
    lines += ["", summary(plan), *unproven(plan), *left_open(plan)]
    return "\n".join(lines) + "\n"


def _what(item: Item) -> str:
    match item.outcome:
        case Derivation(form=form):
            return form
        case refusal:
            return f"refused: {refusal.code}"


def _details(item: Item) -> Sequence[str]:
    match item.outcome:
        case Derivation() as derived:
            return (*derived.files, derived.brief)
        case refusal:
            where = f"{refusal.place}: " if refusal.place is not None else ""
            return (f"{where}{refusal.reason}",)


def summary(plan: Plan) -> str:
    """How many are patched and refused, in a line."""
    names = {item.architecture for item in plan.patched}
    refused = {item.architecture for item in plan.refused}
    return (
        f"{len(names)} architectures can be patched, in {len(plan.families)} patches;"
        f" {len(refused)} refused on some platform"
    )


def unproven(plan: Plan) -> Sequence[str]:
    """A line that names what has the capability already, without proof; none where all is well."""
    names = dict.fromkeys(row.architecture for row in plan.unproven)
    if not names:
        return []
    return [
        f"left alone, since they have the method, though unproven (see audit): {', '.join(names)}"
    ]


def left_open(plan: Plan) -> Sequence[str]:
    """A line for each row that is not decided, and each input that could not be read."""
    return [*undecided(plan), *unread(plan)]


def undecided(plan: Plan) -> list[str]:
    """A line for each row that is not decided."""
    return [f"not decided: {r.architecture} on {r.platform}: {r.reason}" for r in plan.undecided]


def unread(plan: Plan) -> list[str]:
    """A line for each input that could not be read."""
    return [f"not read: {place(one.path, one.line)}: {one.reason}" for one in plan.unread]


def refusals(plan: Plan) -> Sequence[str]:
    """A line for each item that is refused."""
    return [
        f"refused: {item.architecture} ({', '.join(item.platforms)}): {item.outcome.code}: "
        f"{_details(item)[0]}"
        for item in plan.refused
        if not isinstance(item.outcome, Derivation)
    ]


def untested(plan: Plan) -> list[str]:
    """Patched classes for which no test can be generated, with the reason."""
    return [
        f"no test for {trial.cls}: {trial.reason}" for trial in plan.trials if trial.subject is None
    ]
