"""The calls that configuration code makes: functions of the tree, Python's own, constructors."""

from __future__ import annotations

import ast

from msgspec.structs import replace

from auditor.contracts.expressions import BUILTINS, Expressions
from auditor.contracts.interpreter import Maker, Path, explore
from auditor.contracts.names import Outside, Ref
from auditor.contracts.things import (
    PLAIN,
    UNBOUND,
    Bound,
    Code,
    Each,
    Frame,
    Raised,
    Thing,
    Value,
    certain,
    is_known,
    is_open,
    shown,
    text_of,
)
from auditor.values import Place

#: Methods of constants and containers that are run as they are.
_METHODS = frozenset(
    "startswith endswith lower upper strip split replace removeprefix removesuffix join get keys "
    "values items intersection union difference issubset issuperset isdisjoint copy index count "
    "append extend update setdefault pop add".split()
)
#: Those of them that change what they are called on.
_CHANGING = frozenset("append extend update setdefault pop add".split())
_COPIES = frozenset({"copy.copy", "copy.deepcopy"})


class ConfigInterpreter(Expressions):
    """Runs the configuration code of a tree."""

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        maker = self._maker(node.func, frame) if self.makers else None
        if maker is not None:
            given = [k.value for k in node.keywords if k.arg == maker.argument]
            return maker.make(self.expr(given[0], frame) if given else None)
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
                return self._super(name, node, frame)
            case ast.Name(id=name) if name not in frame.names:
                args, named = self._arguments(node, frame)
                answer = self._builtin(name, args, node, frame)
                if answer is not UNBOUND:
                    return answer
                return self._invoke(self._name(name, frame), args, named, node, frame)
            case _:
                func = self.expr(node.func, frame)
                args, named = self._arguments(node, frame)
                return self._invoke(func, args, named, node, frame)

    def _maker(self, func: ast.expr, frame: Frame) -> Maker | None:
        found = self.expr(func, frame) if isinstance(func, ast.Name) else None
        return self.makers.get(found) if isinstance(found, Ref) else None

    def _arguments(self, node: ast.Call, frame: Frame) -> tuple[list[Value], dict[str, Value]]:
        named: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.expr(keyword.value, frame)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif isinstance(value, dict):
                named.update((key, item) for key, item in value.items() if isinstance(key, str))
        return self._display(node.args, frame), named

    def _invoke(
        self,
        func: Value,
        args: list[Value],
        named: dict[str, Value],
        node: ast.Call,
        frame: Frame,
    ) -> Value:
        match func:
            case Bound(owner=owner, code=Code() as code, named=preset):
                given = args if owner is None else [owner, *args]
                return self._enter(code, given, {**dict(preset), **named}, node, frame)
            case Outside(dotted="functools.partial") if args and isinstance(args[0], Bound):
                return replace(args[0], named=tuple(named.items()))
            case Bound(owner=owner, name=name):
                return self._method_of_value(owner, name, args, named, node)
            case Each():
                return Thing(text_of(node), "a call of one of several is not followed")
            case Ref() as found:
                function = self._code(found)
                if function is not None:
                    return self._enter(function, args, named, node, frame)
                made = self.construct(found, args, named)
                made.where = Place(self.names.path(frame.module), node.lineno)
                return made
            case Thing(text=text):
                given_text = ", ".join(map(shown, args))
                return Thing(f"{text}({given_text})", self._reason([func, *args]))
            case Outside(dotted=dotted) if dotted in _COPIES and args:
                return args[0].copied() if isinstance(args[0], Thing) else args[0]
            case Outside(dotted=dotted) if dotted.rpartition(".")[2] == "get_args" and args:
                return args[0] if isinstance(args[0], tuple) else Thing(text_of(node))
            case _:
                return Thing(text_of(node), f"the call of {ast.unparse(node.func)} is not followed")

    def _enter(
        self,
        code: Code,
        args: list[Value],
        named: dict[str, Value],
        node: ast.Call,
        frame: Frame,
    ) -> Value:
        """Run a function; where each way through it gives something unknown, ask nothing for it."""
        outer, point, changed = self.path, self.path.enter(), self.changed
        branches = any(isinstance(inner, ast.If) for inner in code.node.body)
        if branches and point not in outer.apart and not self.changes(code):
            paths: list[Path] = []

            def run(path: Path) -> Value:
                paths.append(path)
                path.known.update(outer.known)
                self.path = path
                return self.call(code, args, named, frame.depth + 1)

            try:
                values = [value for value, _ in explore(run, outer.alive)]
            finally:
                self.path = outer
            if values and all(map(is_open, values)):
                return Thing(text_of(node), self._reason(values))
            if values and all(is_known(one) and one == values[0] for one in values):
                return values[0]
            if values and not any(path.asked for path in paths):
                # There is one way, and it was just gone.
                outer.alive, outer.steps = paths[0].alive, outer.steps + paths[0].steps
                return values[0]
            if self.changed == changed:
                outer.apart.add(point)
        return self.call(code, args, named, frame.depth + 1)

    def _method_of_value(
        self,
        owner: Value,
        name: str,
        args: list[Value],
        named: dict[str, Value],
        node: ast.Call,
    ) -> Value:
        if isinstance(owner, Thing) and name == "get":
            key = args[0] if args else None
            return owner.get(key) if isinstance(key, str) else Thing(text_of(node), owner.reason)
        if isinstance(owner, Thing):
            given = args[0] if args and isinstance(args[0], dict) else {}
            for key, value in {**given, **named}.items():
                self.set(owner, str(key), value)
            return None
        if name not in _METHODS:
            return Thing(text_of(node), f"the method {name} is not followed")

        def apply(owner: Value, *args: Value) -> Value:
            if not is_known(owner) and not isinstance(owner, dict | list):
                return Thing(text_of(node), self._reason([owner]))
            try:
                found = getattr(owner, name)(*args, **named)
            except (TypeError, AttributeError, LookupError, ValueError):
                raise Raised() from None
            return list(found) if name in ("keys", "values", "items") else found

        if name in _CHANGING:
            self.changed += 1
            return apply(owner, *args)
        return self.each(apply, owner, *args)

    def _super(self, name: str, node: ast.Call, frame: Frame) -> Value:
        """``super().name(…)``; a constructor outside the tree makes attributes of keywords."""
        this = frame.names.get("self")
        args, named = self._arguments(node, frame)
        if isinstance(this, Thing) and isinstance(this.cls, Ref) and frame.owner is not None:
            found = self.names.method(this.cls, name, frame.owner)
            if found is not None:
                code = Code(found[0].module, found[1], found[0])
                return self.call(code, [this, *args], named, frame.depth + 1)
            if name == "__init__":
                for key, value in named.items():
                    self.set(this, key, value)
                return None
        return Thing(text_of(node), "a method outside the tree is not followed")

    def _builtin(self, name: str, args: list[Value], node: ast.Call, frame: Frame) -> Value:
        """A call of one of Python's own functions; UNBOUND for any other."""
        match name, args:
            case "getattr", [owner, str() as attr, *default]:
                return self._getattr(owner, attr, default, node, frame)
            case "hasattr", [owner, str() as attr]:
                return self._hasattr(owner, attr)
            case "setattr", [Thing() as owner, str() as attr, value]:
                self.set(owner, attr, value)
                return None
            case "isinstance", [value, classes]:
                return self._isinstance(value, classes, node)
            case "callable", [value]:
                if isinstance(value, PLAIN):
                    return False
                return Thing(f"callable({shown(value)})", self._reason([value]))
            case (("any" | "all"), [list() as items]):
                return self._any_all(name, items)
            case _, _ if name in BUILTINS and name not in frame.names:
                return self._plain_builtin(name, args, node)
            case _:
                return UNBOUND

    def _plain_builtin(self, name: str, args: list[Value], node: ast.Call) -> Value:
        def apply(*args: Value) -> Value:
            if any(isinstance(one, Thing | Outside | Ref | Bound) for one in args):
                known = [one for one in args if isinstance(one, int)]
                call_text = f"{name}({', '.join(map(shown, args))})"
                most = min(known) if name == "min" and known else None
                return Thing(call_text, self._reason(args), most=most)
            try:
                return BUILTINS[name](*args)
            except (TypeError, ValueError):
                raise Raised() from None

        return self.each(apply, *args)

    def _any_all(self, name: str, items: list[Value]) -> Value:
        def apply(items: list[Value]) -> Value:
            unknown = [one for one in items if is_open(one)]
            if any(certain(one) is (name == "any") for one in items if not is_open(one)):
                return name == "any"
            if not unknown:
                return name != "any"
            return Thing(f"{name}({', '.join(map(shown, unknown))})", self._reason(unknown))

        return self.each(apply, items)

    def _getattr(
        self, owner: Value, attr: str, default: list[Value], node: ast.Call, frame: Frame
    ) -> Value:
        if isinstance(owner, Thing):
            return self.attribute(owner, attr, node, frame)
        if owner is None and default:
            return default[0]
        return self.attribute(owner, attr, node, frame)

    def _hasattr(self, owner: Value, attr: str) -> Value:
        if isinstance(owner, Thing):
            method = self.names.method(owner.cls, attr) if isinstance(owner.cls, Ref) else None
            if method is not None or is_known(owner.attrs.get(attr, owner)):
                return True
            return Thing(f"hasattr({owner.text}, {attr!r})", owner.reason)
        return hasattr(owner, attr) if isinstance(owner, PLAIN) else Thing(f"has {attr}")

    def _isinstance(self, value: Value, classes: Value, node: ast.Call) -> Value:
        wanted = classes if isinstance(classes, tuple) else (classes,)
        if isinstance(value, Thing) and (value.plain or value.cls is not None):
            named = [one for one in wanted if isinstance(one, Ref | Outside)]
            return value.cls is not None and self.names.is_a(value.cls, named)
        if not isinstance(value, Thing):
            return any(_is_builtin_of(value, one) for one in wanted)
        return Thing(text_of(node), value.reason)


def _is_builtin_of(value: Value, cls: Value) -> bool:
    return isinstance(cls, Bound | Outside) and type(value).__name__ == str(
        cls.name if isinstance(cls, Bound) else cls.dotted
    )
