"""Whether a call fits a method, as Python binds arguments (language reference, 6.3.4 Calls)."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from auditor.contracts.drafters import Call


def misfit(call: Call, method: ast.FunctionDef, qualname: str = "") -> str | None:
    """Why a bound call of ``method`` would raise TypeError, in Python's words; None where it fits.

    Unpacked arguments are taken to hold whatever the call needs beside those that are written.
    """
    arguments, name = method.args, f"{qualname or method.name}()"
    skipped = 0 if _is_static(method) else 1
    positional = [*arguments.posonlyargs, *arguments.args]
    given = [parameter.arg for parameter in positional[: call.positional + skipped]]
    problem = _keywords(call, arguments, given)
    if problem is not None:
        return f"{name} {problem}"
    if call.positional + skipped > len(positional) and arguments.vararg is None:
        return f"{name} {_too_many(call, call.positional + skipped, arguments)}"
    problem = _missing(call, arguments, given)
    return None if problem is None else f"{name} {problem}"


def _keywords(call: Call, arguments: ast.arguments, given: Iterable[str]) -> str | None:
    """What is wrong with the keyword arguments; Python looks at them first."""
    named = {parameter.arg for parameter in (*arguments.args, *arguments.kwonlyargs)}
    for keyword in call.keywords:
        if keyword in named and keyword in given:
            return f"got multiple values for argument '{keyword}'"
        if keyword in named or arguments.kwarg is not None:
            continue
        # CPython names all of these at the first keyword that no parameter takes.
        mistaken = ", ".join(p.arg for p in arguments.posonlyargs if p.arg in call.keywords)
        if mistaken:
            return f"got some positional-only arguments passed as keyword arguments: '{mistaken}'"
        return f"got an unexpected keyword argument '{keyword}'"
    return None


def open_binding(call: Call, method: ast.FunctionDef) -> str | None:
    """Why it cannot be said whether a call fits; None where that can be said."""
    if misfit(call, method) is not None or not (call.starred or call.unpacked):
        return None
    which = "*" if call.starred else "**"
    return f"the call unpacks {which}arguments, whose number is not known"


def takes(method: ast.FunctionDef, keyword: str) -> bool:
    """Whether a method has a parameter of this name, or takes any keyword."""
    arguments = method.args
    named = (*arguments.args, *arguments.kwonlyargs)
    return arguments.kwarg is not None or any(p.arg == keyword for p in named)


def signature(method: ast.FunctionDef) -> str:
    """``name(parameters)`` without annotations, as the definition has them."""
    arguments = method.args
    late = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    texts: list[str] = []
    for index, parameter in enumerate([*arguments.posonlyargs, *arguments.args]):
        default = arguments.defaults[index - late] if index >= late else None
        texts.append(_parameter(parameter, default))
        if index + 1 == len(arguments.posonlyargs):
            texts.append("/")
    if arguments.vararg is not None:
        texts.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        texts.append("*")
    texts += map(_parameter, arguments.kwonlyargs, arguments.kw_defaults)
    if arguments.kwarg is not None:
        texts.append(f"**{arguments.kwarg.arg}")
    return f"{method.name}({', '.join(texts)})"


def _parameter(parameter: ast.arg, default: ast.expr | None) -> str:
    return f"{parameter.arg}={ast.unparse(default)}" if default is not None else parameter.arg


def _is_static(method: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == "staticmethod" for node in method.decorator_list
    )


def _too_many(call: Call, given: int, arguments: ast.arguments) -> str:
    """As CPython says it, with the keyword-only arguments that were given beside."""
    most = len(arguments.posonlyargs) + len(arguments.args)
    least = most - len(arguments.defaults)
    takes_text = str(most) if least == most else f"from {least} to {most}"
    only = {parameter.arg for parameter in arguments.kwonlyargs}.intersection(call.keywords)
    beside = ""
    if only:
        beside = f" positional argument{_s(given)} (and {len(only)} keyword-only argument"
        beside += f"{_s(len(only))})"
    were = "was" if given == 1 and not only else "were"
    limit = _s(2 if least != most else most)
    return f"takes {takes_text} positional argument{limit} but {given}{beside} {were} given"


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def _missing(call: Call, arguments: ast.arguments, given: Iterable[str]) -> str | None:
    """The error for parameters without a value; what is unpacked may give the rest."""
    only = {parameter.arg for parameter in arguments.posonlyargs}
    positional = [*arguments.posonlyargs, *arguments.args]
    required = positional[: len(positional) - len(arguments.defaults)]
    bound = {*given, *(keyword for keyword in call.keywords if keyword not in only)}
    kwonly = [
        parameter.arg
        for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None and parameter.arg not in bound
    ]
    late = [parameter.arg for parameter in required if parameter.arg not in bound]
    if late and not (call.starred or call.unpacked):
        return _lacks("positional", late)
    if kwonly and not call.unpacked:
        return _lacks("keyword-only", kwonly)
    return None


def _lacks(kind: str, missing: list[str]) -> str:
    quoted = [f"'{one}'" for one in missing]
    plural = "s" if len(missing) > 1 else ""
    return f"missing {len(missing)} required {kind} argument{plural}: {_listed(quoted)}"


def _listed(quoted: list[str]) -> str:
    """As CPython lists names: with a comma before ``and`` where there are three or more."""
    match quoted:
        case [one]:
            return one
        case [one, two]:
            return f"{one} and {two}"
        case _:
            return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
