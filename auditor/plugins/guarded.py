"""What statements would do to classes and to the registry, by their text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from auditor import facts as f

_BLOCKS = ("body", "orelse", "handlers", "final")


@dataclass(frozen=True, slots=True)
class Effect:
    """A store into an attribute, or a call by which something is registered.

    ``owner`` is the object whose attribute it is, and None for a call; ``name`` is the attribute,
    or the first argument of the call; ``method`` is the method that is called. ``by`` is the
    expression that gives the name, where it is no constant.
    """

    owner: f.Expr | None
    name: str
    line: int
    method: str = ""
    by: f.Expr | None = None

    def registers(self, method: str) -> bool:
        """Whether it is a call of this method, or a store into something."""
        return self.owner is not None or self.method == method


def effects_in(body: Iterable[f.Stmt]) -> Iterator[Effect]:
    """The effects of statements and of their branches, in order."""
    for stmt in body:
        line = int(getattr(stmt, "line", 0))
        match stmt:
            case f.Assign(targets=targets):
                for target in targets:
                    if isinstance(target, f.Attr):
                        yield Effect(target.value, target.attr, line)
            case f.Do(
                value=f.Call(func=f.Name(id="setattr"), args=(owner, f.Const(value=name), _))
            ):
                yield Effect(owner, str(name), line)
            case f.Do(value=f.Call(func=f.Name(id="setattr"), args=(owner, by, _))):
                yield Effect(owner, "", line, by=by)
            case f.Do(value=f.Call(func=f.Attr(attr=method), args=args)):
                first = args[0] if args else None
                name = str(first.value) if isinstance(first, f.Const) else ""
                yield Effect(None, name, line, method)
            case _:
                pass
        if not isinstance(stmt, f.Func | f.Class):
            for block in _BLOCKS:
                yield from effects_in(getattr(stmt, block, ()))
