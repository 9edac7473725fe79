"""What the engine's callers have to say about a method that a class does not have yet."""

from __future__ import annotations

import ast

from auditor.contracts.contract import Contracts
from auditor.contracts.drafters import Call, Drafter
from auditor.facts import Unparsed
from auditor.headpath.path import HeadPath, step_parameters
from auditor.program import Files
from auditor.ruleset.capabilities import Capability
from auditor.syntax.parsing import parse
from codemods.plans import PassArgument, Refusal, Site


def demands(
    contracts: Contracts,
    architecture: str,
    capability: Capability,
    step: str,
    logits: HeadPath | None,
    files: Files,
) -> Refusal | tuple[PassArgument, ...]:
    """What must change in the callers, so that the method picks the right token for each of them.

    Args:
        contracts: who drafts for which architecture, and with which calls.
        architecture: the draft.
        capability: the method, and the one that it agrees with.
        step: the argument that says which draft step it is.
        logits: the head path of the class.
        files: the files of the tree.

    Returns:
        Arguments to pass, none where every caller is right as it is; or a refusal where no method
        would do any good, or a caller cannot be made right.
    """
    drafters = [drafter for _, drafter in contracts.of(architecture)]
    if not drafters or any(drafter.open for drafter in drafters):
        return ()
    if not any(drafter.of(capability.name) for drafter in drafters):
        names = " and ".join(dict.fromkeys(drafter.cls.name for drafter in drafters))
        reason = f"{names} never calls {capability.name}, so that a method would not be used"
        return Refusal("never-called", reason, drafters[0].where)
    if not _depends_on(step, logits):
        return ()
    found: dict[PassArgument, None] = {}
    for drafter in drafters:
        for call in _dropping(drafter, capability, step):
            edit = _completed(call, drafter, capability, step, files)
            if edit is None:
                reason = (
                    f"{drafter.cls.name} passes {step} to {capability.agrees_with} and not to"
                    f" {call.form}: the method would use the first head at every step"
                )
                return Refusal("caller", reason, call.where)
            found[edit] = None
    return tuple(found)


def _dropping(drafter: Drafter, capability: Capability, step: str) -> tuple[Call, ...]:
    """Calls of the capability without the step, where the other method is told the step."""
    others = drafter.of(capability.agrees_with) if capability.agrees_with is not None else ()
    if not any(_passes(call, step) for call in others):
        return ()
    return tuple(call for call in drafter.of(capability.name) if not _passes(call, step))


def _completed(
    call: Call, drafter: Drafter, capability: Capability, step: str, files: Files
) -> PassArgument | None:
    """The argument that the call lacks, as the same function passes it to the other method.

    None where it passes it nowhere, or in more than one way, or where the call cannot be found.
    """
    source = files.text(call.where.path)
    module = parse(source) if isinstance(source, bytes) else source
    if isinstance(module, Unparsed) or not isinstance(source, bytes):
        return None
    for cls in (node for node in module.body if isinstance(node, ast.ClassDef)):
        for function in (node for node in cls.body if isinstance(node, ast.FunctionDef)):
            if not function.lineno <= call.where.line <= (function.end_lineno or 0):
                continue
            calls = [c for c in _calls(function, capability.name) if c.lineno == call.where.line]
            values = {
                ast.unparse(keyword.value)
                for other in _calls(function, capability.agrees_with or "")
                for keyword in other.keywords
                if keyword.arg == step
            }
            if len(calls) != 1 or len(values) != 1:
                return None
            line = source.split(b"\n")[calls[0].lineno - 1]
            column = len(line[: calls[0].col_offset].decode("utf-8", "replace"))
            dotted = f"{drafter.cls.module}.{cls.name}"
            site = Site(call.where.path, cls.name, cls.lineno, dotted)
            return PassArgument(site, calls[0].lineno, column, step, values.pop())
    return None


def _calls(function: ast.FunctionDef, method: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == method
    ]


def passes_step(contracts: Contracts, architecture: str, capability: Capability, step: str) -> bool:
    """Whether a caller of the capability passes the draft step for an architecture."""
    calls = [c for _, drafter in contracts.of(architecture) for c in drafter.of(capability.name)]
    return any(step in call.keywords for call in calls)


def _passes(call: Call, step: str) -> bool:
    return step in call.keywords or step in call.arguments or call.unpacked


def _depends_on(step: str, logits: HeadPath | None) -> bool:
    branches = logits.branches if logits is not None else ()
    return any(step in step_parameters(branch.result) for branch in branches)
