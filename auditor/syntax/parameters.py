"""The parameters of a function or a lambda."""

from __future__ import annotations

import ast


def with_defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr]]:
    """The parameters that have a default value, in the order in which ``def`` evaluates those."""
    positional = [*arguments.posonlyargs, *arguments.args]
    late = positional[len(positional) - len(arguments.defaults) :]
    pairs = [*zip(late, arguments.defaults, strict=True)]
    pairs += [
        (argument, default)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    ]
    return pairs


def is_simple(arguments: ast.arguments) -> bool:
    """Whether all that is there are parameters without defaults, given by place or keyword."""
    return not (
        arguments.vararg
        or arguments.kwarg
        or arguments.kwonlyargs
        or arguments.defaults
        or arguments.posonlyargs
    )
