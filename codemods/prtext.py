"""A draft of a pull request's body. A person reviews it, runs the plan, and owns what is sent."""

from __future__ import annotations

from collections.abc import Iterable

from codemods.harness.files import named
from codemods.plans import AddMethod, Derivation, Family, PassArgument, Plan

_OWN = (
    "<!-- A draft, written by draftaudit from the source alone. Review every line, run the test"
    " plan on hardware, and replace what does not hold. -->"
)


def body(plan: Plan, family: Family) -> str:
    """The body for one patch."""
    return "\n".join(
        [
            _OWN,
            "",
            "## Purpose",
            "",
            *_purpose(plan, family),
            "",
            "## Why this form",
            "",
            *_why(plan, family),
            "",
            "## Test Plan",
            "",
            *_tests(plan, family),
            "",
            "## Test Result",
            "",
            "To be filled in by whoever runs the plan.",
            "",
        ]
    )


def _purpose(plan: Plan, family: Family) -> Iterable[str]:
    names = ", ".join(f"`{name}`" for name in family.architectures)
    capability = plan.before.capability
    yield (
        f"{names} cannot be served with `use_local_argmax_reduction`: the draft class has no"
        f" `{capability}`, so the engine raises `ValueError` at start-up. This adds the method, so"
        " that each rank takes the argmax of its own vocabulary shard and only (value, index)"
        " pairs are gathered."
    )


def _why(plan: Plan, family: Family) -> Iterable[str]:
    reasons: dict[str, dict[str, None]] = {}
    for item in plan.patched:
        derived = item.outcome
        if item.family == family.name and isinstance(derived, Derivation):
            reasons.setdefault(f"{derived.form}, since {derived.why}.", {})[item.architecture] = (
                None
            )
    for reason, names in reasons.items():
        yield f"* {', '.join(f'`{name}`' for name in names)}: {reason}"
    for edit in family.edits:
        if isinstance(edit, PassArgument):
            yield (
                f"* `{edit.site.qualname}` told `compute_logits` the draft step and not"
                f" `{plan.before.capability}`, which would take the first head at every step; it"
                " passes the step to both now."
            )
    if any(isinstance(edit, AddMethod) and edit.factor for edit in family.edits):
        yield "* What comes before the head is factored into one method that both callers use."


def _tests(plan: Plan, family: Family) -> Iterable[str]:
    capability = plan.before.capability
    agrees = "compute_logits"
    files = " ".join(sorted(family.after))
    yield f"* `pre-commit run --files {files}`"
    for path, trial in sorted(named(plan.trials).items()):
        if trial.family == family.name:
            yield f"* `pytest {path}`: same tokens on a CPU, without weights (`codemod tests`)."
    yield (
        f"* With tensor parallel sizes 1 and 2 or more, compare `{capability}(h)` with"
        f" `{agrees}(h).argmax(-1)` of the draft model, for every draft step: the same tokens."
    )
    yield (
        "* Serve with `use_local_argmax_reduction` on and off, greedy: the same acceptance length;"
        " and the time of a draft step for both, since the saving has a break-even."
    )
