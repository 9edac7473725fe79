"""How a call binds the parameters of a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from auditor.headpath.terms import Apply, Constant, Global, Operation, Term, Unknown
from auditor.values import ModuleValue, Place


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    """The named parameters of a function, ``self`` included."""
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def bind(
    function: ast.FunctionDef,
    is_method: bool,
    args: tuple[Term, ...],
    named: dict[str, Term],
    module: ModuleValue,
) -> dict[str, Term] | None:
    """Parameters to terms, as a call binds them; None where the call does not fit.

    ``module`` is where the function stands: its defaults are names there.
    """
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args][1 if is_method else 0 :]
    if len(args) > len(positional) and arguments.vararg is None:
        return None
    bound: dict[str, Term] = {p.arg: term for p, term in zip(positional, args, strict=False)}
    allowed = {p.arg for p in (*positional, *arguments.kwonlyargs)}
    for name, term in named.items():
        if name in bound or (name not in allowed and arguments.kwarg is None):
            return None
        bound[name] = term
    for name, default in _defaults(function, module):
        bound.setdefault(name, default)
    if not allowed <= bound.keys():
        return None
    if arguments.vararg is not None:
        bound[arguments.vararg.arg] = Operation("tuple", args[len(positional) :])
    if arguments.kwarg is not None:
        rest = {name: term for name, term in named.items() if name not in allowed}
        bound[arguments.kwarg.arg] = Apply(Global("dict"), (), pairs(rest))
        bound = {name: term for name, term in bound.items() if name not in rest}
    return bound


def _defaults(function: ast.FunctionDef, module: ModuleValue) -> Iterator[tuple[str, Term]]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    late = positional[len(positional) - len(arguments.defaults) :]
    pairs: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(late, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    for argument, node in pairs:
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() | bytes() as value):
                yield argument.arg, Constant(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                yield argument.arg, Constant(-value)
            case ast.Name() | ast.Attribute():
                yield argument.arg, Global(f"{module.name}:{ast.unparse(node)}")
            case ast.expr():
                # Made once, when the function is defined, and the same object in every call.
                reason = f"the default of {argument.arg} is one object for all calls"
                yield argument.arg, Unknown(reason, str(Place(module.path, node.lineno)))
            case None:
                continue


def head_arguments(
    args: tuple[Term, ...], named: dict[str, Term]
) -> tuple[Term | None, Term | None, Term | None]:
    """Head, hidden states and bias of a call of the logits processor, by its signature."""
    names = ("lm_head", "hidden_states", "embedding_bias")
    if len(args) > len(names) or not named.keys() <= set(names):
        # Something that changes what the processor does (skip_gather).
        return None, None, None
    given: dict[str, Term] = dict(zip(names, args, strict=False))
    given.update(named)
    bias = given.get("embedding_bias")
    if isinstance(bias, Constant) and bias.value is None:
        bias = None
    return given.get("lm_head"), given.get("hidden_states"), bias


def pairs(named: Mapping[str, Term]) -> tuple[tuple[str, Term], ...]:
    """Keyword arguments in one order, whatever the order of the call."""
    return tuple(sorted(named.items()))
