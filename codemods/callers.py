"""What the engine's callers have to say about a method that a class does not have yet."""

from __future__ import annotations

from auditor.contracts.contract import Call, Contracts, Drafter
from auditor.headpath.path import HeadPath, step_parameters
from auditor.rulesdata import Capability
from codemods.plans import Refusal


def objection(
    contracts: Contracts,
    architecture: str,
    capability: Capability,
    step: str,
    logits: HeadPath | None,
) -> Refusal | None:
    """Why no method would do any good, or would pick other tokens; None where none is known.

    Args:
        contracts: who drafts for which architecture, and with which calls.
        architecture: the draft.
        capability: the method, and the one that it agrees with.
        step: the argument that says which draft step it is.
        logits: the head path of the class.
    """
    drafters = [drafter for _, drafter in contracts.of(architecture)]
    if not drafters or any(drafter.open for drafter in drafters):
        return None
    if not any(drafter.of(capability.name) for drafter in drafters):
        names = " and ".join(dict.fromkeys(drafter.cls.name for drafter in drafters))
        reason = f"{names} never calls {capability.name}, so that a method would not be used"
        return Refusal("never-called", reason, drafters[0].where)
    if not _depends_on(step, logits):
        return None
    for drafter in drafters:
        call = dropping(drafter, capability, step)
        if call is not None:
            reason = (
                f"{drafter.cls.name} passes {step} to {capability.agrees_with} and not to"
                f" {call.form}: the method would use the first head at every step"
            )
            return Refusal("caller", reason, call.where)
    return None


def passes_step(contracts: Contracts, architecture: str, capability: Capability, step: str) -> bool:
    """Whether a caller of the capability passes the draft step for an architecture."""
    calls = [c for _, drafter in contracts.of(architecture) for c in drafter.of(capability.name)]
    return any(step in call.keywords for call in calls)


def dropping(drafter: Drafter, capability: Capability, step: str) -> Call | None:
    """A call of the capability without the step, where the other method is told the step."""
    others = drafter.of(capability.agrees_with) if capability.agrees_with is not None else ()
    if not any(_passes(call, step) for call in others):
        return None
    return next((call for call in drafter.of(capability.name) if not _passes(call, step)), None)


def _passes(call: Call, step: str) -> bool:
    return step in call.keywords or step in call.arguments or call.unpacked


def _depends_on(step: str, logits: HeadPath | None) -> bool:
    branches = logits.branches if logits is not None else ()
    return any(step in step_parameters(branch.result) for branch in branches)
