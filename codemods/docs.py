"""The docstring of a generated method: what it is for, and why its pre-head is what it is."""

from __future__ import annotations

import ast

from auditor.headpath.norms import Convention
from auditor.headpath.path import HeadPath
from auditor.headpath.shapes import norm_of
from auditor.headpath.terms import Param, Part, Term, show
from codemods.chain import Link
from codemods.plans import Factor

_WHAT = "Greedy draft tokens by an argmax over each rank's vocabulary shard."


def paragraphs(
    link: Link,
    path: HeadPath,
    factor: Factor | None,
    norms: Convention | None,
    capability: str,
    agrees: str,
) -> tuple[str, ...]:
    """The docstring's paragraphs, without quotes and line breaks.

    ``norms`` is what ``forward`` returns, which is why a norm is applied or left out.
    """
    if link.inner is not None:
        return (f"See ``{link.inner.qualname}.{capability}``.",)
    return (_WHAT, _pre_head(link, path, factor, norms, agrees))


def _pre_head(
    link: Link, path: HeadPath, factor: Factor | None, norms: Convention | None, agrees: str
) -> str:
    if factor is not None:
        return (
            f"Shares ``{factor.name}`` with ``{agrees}``, so that both take the same state to the"
            " head."
        )
    every = {branch.head_term.hidden for branch in path.branches if branch.head_term is not None}
    hidden = every.pop()
    norm = norm_of(hidden)
    returned = norms.positions[0].kind if norms is not None and norms.positions else "unknown"
    if every:
        return f"Takes the same state to the head as ``{agrees}`` on either branch."
    match hidden:
        case Param(name=name) if _is_handed(link, name) and returned == "normed":
            return f"``{name}`` come normed from ``forward``, so the head takes them as they are."
        case Param(name=name) if _is_handed(link, name):
            return f"``{name}`` go to the head as they are: ``{agrees}`` applies no norm either."
        case Param(name=name) if (part := _passes_through(link, name)) and returned == "normed":
            return f"``{name}`` come normed from ``forward``, and ``{part}`` adds no norm."
        case Param(name=name) if part := _passes_through(link, name):
            return f"``{part}`` applies no norm: ``{name}`` go to the head as they are."
        case Param(name=name):
            return f"What ``{agrees}`` does before the head leaves ``{name}`` as they are."
        case _ if norm is not None and isinstance(norm[1], Param) and returned == "raw":
            return (
                f"``forward`` returns ``{norm[1].name}`` before ``{_short(norm[0])}``, so it is"
                f" applied here, as in ``{agrees}``."
            )
        case _ if norm is not None and isinstance(norm[1], Param):
            return (
                f"Applies ``{_short(norm[0])}`` to ``{norm[1].name}`` before the head, as"
                f" ``{agrees}`` does."
            )
        case _:
            return common_reason(agrees)


def common_reason(agrees: str) -> str:
    """What is true of every generated method."""
    return f"Takes the same state to the head as ``{agrees}``, for the same argmax."


def _is_handed(link: Link, name: str) -> bool:
    """Whether the call of the processor is handed the parameter itself."""
    return all(
        any(isinstance(arg, ast.Name) and arg.id == name for arg in _arguments(call))
        for call in link.calls
    )


def _passes_through(link: Link, name: str) -> str:
    """The part that a parameter is handed to, if it is one; it comes out of it unchanged."""
    handed = {
        ast.unparse(call.func).rpartition(".")[2]
        for call in ast.walk(link.function)
        if isinstance(call, ast.Call)
        and call not in link.calls
        and isinstance(call.func, ast.Attribute)
        and any(isinstance(arg, ast.Name) and arg.id == name for arg in _arguments(call))
    }
    return handed.pop() if len(handed) == 1 else ""


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _short(term: Term) -> str:
    """The last two names of a part of the model (``shared_head.norm``)."""
    if isinstance(term, Part) and isinstance(term.owner, Part):
        return f"{term.owner.name}.{term.name}"
    return term.name if isinstance(term, Part) else show(term)
