"""From what lacks the capability to proven patches, one a family.

A family is what one patch changes: the edits that share a file. So two families never meet in a
file, and their patches go in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec
from msgspec.structs import replace

from auditor.api import Request, Resources
from auditor.coverage import INPUT_KINDS, Coverage, Row
from auditor.processes import Beside, can_fork
from auditor.ruleset.platforms import platforms
from auditor.sources.tree import Source
from codemods.applying import applier, misapplied
from codemods.docs import common_reason
from codemods.edit import edited, line_width
from codemods.gather import Lacking, gathered, is_candidate, looker
from codemods.harness.render import Subject
from codemods.jobs import Jobs, jobs_of
from codemods.plans import (
    AddMethod,
    Derivation,
    Edit,
    Family,
    Item,
    Plan,
    Refusal,
    Refused,
    Site,
    Trial,
)
from codemods.prove import Claim, prove

#: Fewer families than this are edited faster than another process is started.
_WORTH_SHARING = 4


def plan(source: Source, request: Request, resources: Resources) -> Plan:
    """Derive, edit and prove.

    ``request.platforms`` and ``request.architectures`` say for whom; the proof looks at all.

    Raises:
        DraftauditError: as :func:`auditor.api.audit`.
    """
    return plan_with_grounds(source, request, resources)[0]


def plan_with_grounds(
    source: Source, request: Request, resources: Resources
) -> tuple[Plan, frozenset[str]]:
    """The same, with the files that it rests on."""
    everything = replace(request, platforms=(), architectures=())
    with jobs_of(source, everything, resources) as jobs:
        looked = _looked(jobs, source, request)
        return _planned(jobs, source, request, resources.processes, looked), jobs.consulted


def _looked(jobs: Jobs, source: Source, request: Request) -> tuple[Coverage, list[Lacking]]:
    """The document, and what lacks the capability; both in one run where nothing is kept."""
    look = looker(jobs.files, source.tree.files(), lambda row: _asked(row, request))
    before = jobs.kept()
    if before is None:
        before, seen = jobs.run(look)
    else:
        wanted = _wanted(before, request)
        seen = jobs.look(replace(request, architectures=wanted), look) if wanted else ()
    return before, gathered(seen)


def _planned(
    jobs: Jobs,
    source: Source,
    request: Request,
    processes: int | None,
    looked: tuple[Coverage, list[Lacking]],
) -> Plan:
    before, lacking = looked
    lacking = _agreed(_worded_alike(lacking))
    families, refused = _families(source, lacking, processes)
    proven = _proven(jobs, before, families, refused)
    named = {edit: family.name for family in families for edit in family.edits}
    items = _items(lacking, named, refused)
    done = {(item.architecture, name) for item in items for name in item.platforms}
    return Plan(
        items=items,
        families=proven,
        before=before,
        undecided=tuple(r for r in before.rows if r.verdict == "?" and _asked(r, request)),
        unproven=tuple(
            row
            for row in before.rows
            if row.verdict in ("yes?", "unsafe")
            and _asked(row, request)
            and (row.architecture, row.platform) not in done
        ),
        unread=tuple(one for one in before.undecided if one.kind in INPUT_KINDS),
        applied_by=applier() if proven else "",
        trials=tuple(_trials(lacking, proven, before)),
    )


def _trials(
    lacking: Sequence[Lacking], families: Sequence[Family], before: Coverage
) -> Iterator[Trial]:
    """A test for every class that a family patches, or why there is none."""
    everywhere = {row.platform for row in before.rows}
    for family in families:
        for cls in sorted(family.roots):
            one = next(one for one in lacking if one.cls == cls and _edits(one))
            where = tuple(dict.fromkeys(r.platform for r in before.rows if _class_of(r) == cls))
            if not isinstance(one.trial, Subject):
                yield Trial(family.name, cls, None, one.trial, where)
                continue
            only = () if everywhere <= set(where) else _predicates(where)
            yield Trial(family.name, cls, replace(one.trial, platforms=only), "", where)


def _class_of(row: Row) -> str:
    return f"{row.module}.{row.class_}"


def _predicates(names: Iterable[str]) -> tuple[str, ...]:
    """For each platform the question that only it answers with yes."""
    known = {rule.name: rule.predicates for rule in platforms()}
    shared = Counter(q for asked in known.values() for q, holds in asked.items() if holds)
    found: list[str] = []
    for name in names:
        own = [q for q, holds in known[name].items() if holds and shared[q] == 1]
        found.extend(own[:1])
    return tuple(found)


def _proven(
    jobs: Jobs, before: Coverage, families: Sequence[Family], refused: dict[str, Refusal]
) -> tuple[Family, ...]:
    """The families whose patches apply, and whose rows are ``yes`` then; the others are refused."""
    edited_ones = [family for family in families if family.name not in refused]
    refused.update(_misapplied(edited_ones))
    proven = tuple(family for family in families if family.name not in refused)
    while proven:
        failures = prove(jobs, before, [_claim(family) for family in proven]).failures
        refused.update({name: Refusal("not-proven", why) for name, why in failures.items()})
        if not failures:
            break
        proven = tuple(family for family in proven if family.name not in failures)
    return proven


def _misapplied(families: Sequence[Family]) -> dict[str, Refusal]:
    """The families whose diffs do not give their bytes; all are tried at once, then each."""
    before = {path: content for one in families for path, content in one.before.items()}
    after = {path: content for one in families for path, content in one.after.items()}
    every = b"".join(family.diff for family in families)
    if not families or misapplied(before, after, every) is None:
        return {}
    tried = {one.name: misapplied(one.before, one.after, one.diff) for one in families}
    return {name: Refusal("not-proven", why) for name, why in tried.items() if why is not None}


def _asked(row: Row, request: Request) -> bool:
    globs = request.architectures
    return (not request.platforms or row.platform in request.platforms) and (
        not globs or any(fnmatchcase(row.architecture, glob) for glob in globs)
    )


def _wanted(before: Coverage, request: Request) -> tuple[str, ...]:
    """The architectures asked for that lack the capability somewhere, or have a part of it."""
    rows = (row for row in before.rows if is_candidate(row))
    return tuple(sorted({row.architecture for row in rows if _asked(row, request)}))


def _worded_alike(lacking: Sequence[Lacking]) -> list[Lacking]:
    """The same, with one docstring for each method.

    Drafts that share a class may be known to different depths; what is said of the class must be
    true of all of them.
    """
    docs: dict[Edit, set[tuple[str, ...]]] = {}
    for one in lacking:
        for edit in _edits(one):
            if isinstance(edit, AddMethod):
                docs.setdefault(replace(edit, doc=()), set()).add(edit.doc)

    def worded(edit: Edit) -> Edit:
        if not isinstance(edit, AddMethod) or len(docs[replace(edit, doc=())]) == 1:
            return edit
        return replace(edit, doc=(edit.doc[0], common_reason(edit.source)))

    return [
        replace(one, outcome=replace(one.outcome, edits=tuple(map(worded, one.outcome.edits))))
        if isinstance(one.outcome, Derivation)
        else one
        for one in lacking
    ]


def _agreed(lacking: Sequence[Lacking]) -> list[Lacking]:
    """The same, but nothing is done for a class that platforms would edit in different ways."""
    seen: dict[Site, set[Edit]] = {}
    for one in lacking:
        for edit in _edits(one):
            seen.setdefault(edit.site, set()).add(edit)
    split = {key for key, edits in seen.items() if len(edits) > 1}

    def judged(one: Lacking) -> Lacking:
        for edit in _edits(one):
            if edit.site in split:
                reason = f"{edit.site.qualname} would need another method on another platform"
                return replace(one, outcome=Refusal("platforms-disagree", reason, one.place))
        return one

    return [judged(one) for one in lacking]


def _edits(one: Lacking) -> tuple[Edit, ...]:
    return one.outcome.edits if isinstance(one.outcome, Derivation) else ()


def _families(
    source: Source, lacking: Sequence[Lacking], processes: int | None
) -> tuple[list[Family], dict[str, Refusal]]:
    """The families, and why some of them cannot be edited, by name."""
    found: list[Family] = []
    for members in _grouped(lacking):
        edits = tuple(dict.fromkeys(edit for one in members for edit in _edits(one)))
        paths = sorted({edit.site.path for edit in edits})
        found.append(
            Family(
                name=_name(members, {family.name for family in found}),
                architectures=tuple(sorted({one.architecture for one in members})),
                roots=frozenset(one.cls for one in members),
                edits=edits,
                before={path: source.tree.read(path) for path in paths},
                after={},
            )
        )
    outcomes = _edited_in_two(source, found, processes)
    refused = {
        family.name: outcome
        for family, outcome in zip(found, outcomes, strict=True)
        if isinstance(outcome, Refusal)
    }
    families = [
        family if isinstance(outcome, Refusal) else replace(family, after=outcome.files)
        for family, outcome in zip(found, outcomes, strict=True)
    ]
    return families, refused


class _After(msgspec.Struct, frozen=True, tag=True):
    """The files of a family after its edits."""

    files: dict[str, bytes]


def _edited_in_two(
    source: Source, families: Sequence[Family], processes: int | None
) -> list[_After | Refusal]:
    """What each family's files become: every second one in another process where that may be."""
    width = line_width(source.tree)

    def each(some: Sequence[Family]) -> list[_After | Refusal]:
        return [_edited(source, family, width) for family in some]

    if len(families) < _WORTH_SHARING or not can_fork(processes):
        return each(families)
    beside = Beside(lambda: msgspec.msgpack.encode(each(families[1::2])))
    try:
        mine = each(families[0::2])
        theirs = msgspec.msgpack.decode(beside.result(), type=list[_After | Refusal])
    finally:
        beside.close()
    both: list[_After | Refusal] = [mine[0]] * len(families)
    both[0::2], both[1::2] = mine, theirs
    return both


def _edited(source: Source, family: Family, width: int) -> _After | Refusal:
    try:
        return _After(
            {
                path: edited(
                    path,
                    [edit for edit in family.edits if edit.site.path == path],
                    source.tree.read,
                    width,
                )
                for path in family.before
            }
        )
    except Refused as error:
        return error.refusal


def _grouped(lacking: Iterable[Lacking]) -> list[list[Lacking]]:
    """Those with a derivation, together where their edits share a file."""
    groups: list[tuple[set[str], list[Lacking]]] = []
    for one in lacking:
        if not isinstance(one.outcome, Derivation):
            continue
        paths, members = set(one.outcome.files), [one]
        apart = []
        for other_paths, others in groups:
            if other_paths & paths:
                paths |= other_paths
                members = [*others, *members]
            else:
                apart.append((other_paths, others))
        groups = [*apart, (paths, members)]
    return sorted((members for _, members in groups), key=lambda m: (_first(m), m[0].cls))


def _first(members: Sequence[Lacking]) -> str:
    return min(one.architecture for one in members)


def _name(members: Sequence[Lacking], taken: set[str]) -> str:
    """The first architecture; with the platforms where another family has it too."""
    name = _first(members)
    if name not in taken:
        return name
    platforms = dict.fromkeys(one.platform for one in members)
    return f"{name}-{'-'.join(platforms)}"


def _claim(family: Family) -> Claim:
    owners = frozenset(edit.site.dotted for edit in family.edits)
    mixins = frozenset(getattr(edit, "mixin", "") for edit in family.edits)
    names = frozenset(family.architectures)
    return Claim(family.name, names, family.roots, owners | mixins, family.after)


def _items(
    lacking: Sequence[Lacking], named: Mapping[Edit, str], refused: Mapping[str, Refusal]
) -> tuple[Item, ...]:
    found: dict[tuple[str, str, Derivation | Refusal], list[str]] = {}
    names: dict[tuple[str, str, Derivation | Refusal], str] = {}
    for one in lacking:
        outcome = one.outcome
        family = next((named[edit] for edit in _edits(one) if edit in named), "")
        if family in refused:
            outcome = refused[family]
        key = (one.architecture, one.cls, outcome)
        found.setdefault(key, []).append(one.platform)
        names[key] = family if isinstance(outcome, Derivation) else ""
    return tuple(
        Item(key[0], tuple(platforms), key[1], key[2], names[key])
        for key, platforms in sorted(found.items(), key=lambda pair: (pair[0][0], pair[0][1]))
    )
