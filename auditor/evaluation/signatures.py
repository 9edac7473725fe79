"""How the arguments of a call become the parameters of a function (Python's reference, 6.3.4)."""

from __future__ import annotations

from auditor import facts as f
from auditor.values import Value


def bound_arguments(
    name: str,
    facts: f.FunctionFacts,
    args: tuple[Value, ...],
    keywords: tuple[tuple[str, Value], ...],
) -> dict[str, Value] | str:
    """The parameters that a call gives values to, or what CPython says where it does not fit.

    Parameters that are left to their defaults are not in the result.
    """
    params = facts.params
    if len(args) == len(params) and not (keywords or facts.kwonly or facts.vararg or facts.kwarg):
        return dict(zip(params, args, strict=True))
    positional = params[: len(params) - facts.kwonly]
    scope: dict[str, Value] = dict(zip(positional, args, strict=False))
    extra: dict[str, Value] = {}
    for word, value in keywords:
        if word in params[facts.posonly :]:
            if word in scope:
                return f"{name}() got multiple values for argument {word!r}"
            scope[word] = value
        elif facts.kwarg is not None:
            extra[word] = value
        elif word in params[: facts.posonly]:
            wrong = [one for one, _ in keywords if one in params[: facts.posonly]]
            said = "got some positional-only arguments passed as keyword arguments"
            return f"{name}() {said}: {', '.join(wrong)!r}"
        else:
            return f"{name}() got an unexpected keyword argument {word!r}"
    defaults = {word for word, _ in facts.defaults}
    if len(args) > len(positional) and facts.vararg is None:
        return _too_many(name, positional, defaults, len(args))
    for kind, words in (
        ("positional", positional),
        ("keyword-only", params[len(positional) :]),
    ):
        missing = [word for word in words if word not in scope and word not in defaults]
        if missing:
            return _missing(name, kind, missing)
    if facts.vararg is not None:
        scope[facts.vararg] = tuple(args[len(positional) :])
    if facts.kwarg is not None:
        scope[facts.kwarg] = extra
    return scope


def _too_many(name: str, positional: tuple[str, ...], defaults: set[str], given: int) -> str:
    most, least = len(positional), sum(word not in defaults for word in positional)
    takes = f"{most}" if most == least else f"from {least} to {most}"
    plural = "" if takes == "1" else "s"
    were = "was" if given == 1 else "were"
    return f"{name}() takes {takes} positional argument{plural} but {given} {were} given"


def _missing(name: str, kind: str, words: list[str]) -> str:
    quoted = [repr(word) for word in words]
    listed = quoted[0]
    if len(quoted) == 2:
        listed = " and ".join(quoted)
    elif len(quoted) > 2:
        listed = f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
    plural = "" if len(words) == 1 else "s"
    return f"{name}() missing {len(words)} required {kind} argument{plural}: {listed}"
