"""What the configuration code makes of every checkpoint that it can tell apart.

``hf_config_override`` rewrites a checkpoint's configuration, and ``__post_init__`` settles the
method and may rename the architecture. Both are run over each architecture of the table, and each
string that the rewriting code compares with.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from auditor.contracts.calls import ConfigInterpreter
from auditor.contracts.interpreter import Maker, Path, explore
from auditor.contracts.names import Names, Ref
from auditor.contracts.things import (
    Bound,
    Code,
    Each,
    Frame,
    Question,
    Thing,
    TooMany,
    Value,
    of_one,
)
from auditor.nodes import nodes_of
from auditor.ruleset.engine import EngineRule
from auditor.values import Place

_Answer = TypeVar("_Answer")
_End = tuple[Thing, tuple[Question, ...]]

#: A model type and an architecture that no code mentions.
OTHER = "<other>"


class Checkpoint(msgspec.Struct, frozen=True):
    """What is known of a checkpoint's configuration; ``others`` are further constants in it."""

    architecture: str
    model_type: str
    others: tuple[tuple[str, str | int | bool], ...] = ()


class Settled(msgspec.Struct, frozen=True):
    """A configuration as the engine sees it."""

    method: str
    checkpoint: Checkpoint


class Checkpoints:
    """Finds what every checkpoint comes to, by the tree's own code.

    Args:
        names: the definitions of the tree.
        rule: where that code stands.
        architectures: the table's keys.
        independent: those of them that draft as models of their own.
    """

    def __init__(
        self,
        names: Names,
        rule: EngineRule,
        architectures: Iterable[str],
        independent: Collection[str] = (),
    ) -> None:
        self._names = names
        self._rule = rule
        self._independent = frozenset(independent)
        self._table = frozenset(architectures) - self._independent
        draft = rule.draft
        interest = {
            rule.config.method, rule.config.attribute, draft.attribute, draft.checkpoint,
            draft.architectures, draft.model_type, *rule.drafter.attributes,
        }  # fmt: skip
        self.run = ConfigInterpreter(names, interest, draft.bases, draft.updaters)
        module, _, name = rule.config.class_.rpartition(".")
        self._config = Ref(module, name)
        self.problems: list[tuple[str, Place]] = []

    # --- from a checkpoint to a settled configuration

    def settled(self) -> dict[str, list[Settled]]:
        """For each architecture of the table, the configurations that come to it."""
        found: dict[str, dict[Settled, None]] = {}
        checkpoints = tuple(dict.fromkeys(self._overridden(self._table))) if self._table else ()
        for method in self._methods() if checkpoints else ():
            for one in (*self._settle(method, checkpoints), *self._settle_converted(method)):
                if one.checkpoint.architecture in self._table:
                    found.setdefault(one.checkpoint.architecture, {})[one] = None
        for one in self._settled_alone():
            found.setdefault(one.checkpoint.architecture, {})[one] = None
        return {name: list(ones) for name, ones in found.items()}

    def _settled_alone(self) -> Iterator[Settled]:
        """Configurations of models that draft as they are, by the methods for such."""
        if not self._independent:
            return
        found = tuple(dict.fromkeys(self._overridden(self._independent)))
        checkpoints = tuple(one for one in found if one.architecture in self._independent)
        for method in self._rule.config.independent:
            for one in self._settle(method, checkpoints):
                if one.checkpoint.architecture in self._independent:
                    yield one

    def _methods(self) -> list[str]:
        """One method of each kind that the code can tell apart, without independent drafts."""
        module, _, name = self._rule.config.methods.rpartition(".")
        value = self.run.expr(ast.Name(name, ast.Load()), Frame(module, None, {}, 0))
        methods = [one for one in value if isinstance(one, str)] if isinstance(value, tuple) else []
        mentioned = {word for name in self._members() for word in self._compared(name)}
        kept: dict[object, str] = {}
        for method in methods:
            kept.setdefault(method if method in mentioned else self._lists(module, method), method)
        return [one for one in kept.values() if one not in self._rule.config.independent]

    @cached_property
    def _asked(self) -> frozenset[str]:
        """The names of attributes that the configuration's own questions read."""
        sketch = self._names.sketch(self._config.module)
        found: set[str] = set()
        for name in {*self._members()} - {self._rule.config.override, self._rule.config.settle}:
            node = sketch.method(self._config.name, name) if sketch is not None else None
            for inner in nodes_of(node) if node is not None else ():
                match inner:
                    case ast.Call(
                        func=ast.Name(id="getattr"), args=[_, ast.Constant(value=attr), *_]
                    ):
                        found.add(str(attr))
                    case ast.Attribute(attr=attr):
                        found.add(attr)
                    case _:
                        continue
        return frozenset(found)

    def _lists(self, module: str, method: str) -> tuple[str, ...]:
        """The lists of the module that hold a method which no code mentions by itself."""
        sketch = self._names.sketch(module)
        names = [name for name, c in (sketch.top if sketch else {}).items() if c.kind == "value"]
        frame = Frame(module, None, {}, 0)
        lists = {name: self.run.expr(ast.Name(name, ast.Load()), frame) for name in names}
        return tuple(n for n, held in lists.items() if isinstance(held, tuple) and method in held)

    def _members(self) -> Iterable[str]:
        sketch = self._names.sketch(self._config.module)
        return sketch.members(self._config.name) if sketch is not None else ()

    def _compared(self, member: str) -> set[str]:
        """The strings that a method of the configuration compares its speculative method with."""
        sketch = self._names.sketch(self._config.module)
        node = sketch.method(self._config.name, member) if sketch is not None else None
        found: set[str] = set()
        for inner in nodes_of(node) if node is not None else ():
            parts = list(nodes_of(inner)) if isinstance(inner, ast.Compare) else []
            if any(
                isinstance(p, ast.Attribute) and p.attr == self._rule.config.method for p in parts
            ):
                words = (part.value for part in parts if isinstance(part, ast.Constant))
                found.update(word for word in words if isinstance(word, str))
        return found

    def _witnesses(self) -> Iterator[Checkpoint]:
        """Checkpoints that the rewriting code can tell apart, and one that stands for all others.

        A checkpoint that the code does not mention is left as it is.
        """
        types, names = self._tested(self._rule.config.override)
        yield Checkpoint(OTHER, OTHER)
        for kind in sorted(self._tested_types(self._rule.config.settle)):
            made = self._typed(kind)
            if made is not None:
                made.set(self._rule.draft.model_type, kind)
                yield from self._read(made, [0])
        yield from (Checkpoint(name, OTHER) for name in sorted(names))
        yield from (Checkpoint(OTHER, name) for name in sorted(types))

    def _tested_types(self, member: str) -> set[str]:
        """The model types that a method of the configuration compares with."""
        return self._tested(member)[0]

    def _tested(self, member: str) -> tuple[set[str], set[str]]:
        """The strings that a method compares with: model types, and other words."""
        sketch = self._names.sketch(self._config.module)
        node = sketch.method(self._config.name, member) if sketch is not None else None
        types: set[str] = set()
        names: set[str] = set()
        for inner in nodes_of(node) if node is not None else ():
            if not isinstance(inner, ast.Compare | ast.Call):
                continue
            parts = list(nodes_of(inner))
            of_type = any(
                isinstance(p, ast.Attribute) and p.attr == self._rule.draft.model_type
                for p in parts
            )
            words = {p.value for p in parts if isinstance(p, ast.Constant)}
            if isinstance(inner, ast.Compare) or _is_set_operation(inner):
                (types if of_type else names).update(w for w in words if isinstance(w, str))
        return types, names

    def _overridden(self, table: Collection[str]) -> Iterator[Checkpoint]:
        """Every checkpoint as the override leaves it, those of ``table`` among them."""
        code = self._method(self._rule.config.override)
        mentioned = self._tested(self._rule.config.override)[1]
        yield from (Checkpoint(name, OTHER) for name in sorted(frozenset(table) - mentioned))
        for witness in self._witnesses():
            if code is None:
                yield witness
            else:
                yield from self._after_override(code, witness)

    def by_type(self) -> dict[str, list[Checkpoint]]:
        """What the override makes of a checkpoint of each model type that it compares with."""
        code = self._method(self._rule.config.override)
        types = sorted(self._tested_types(self._rule.config.override)) if code is not None else []
        return {
            kind: list(dict.fromkeys(self._after_override(code, Checkpoint(OTHER, kind))))
            for kind in types
            if code is not None
        }

    def alike(self) -> Iterator[tuple[frozenset[str], Place]]:
        """Model types that one condition of the override lists together, and its place."""
        code = self._method(self._rule.config.override)
        for node in nodes_of(code.node) if code is not None else ():
            if code is None or not isinstance(node, ast.Compare):
                continue
            parts = list(nodes_of(node))
            if any(getattr(part, "attr", "") == self._rule.draft.model_type for part in parts):
                words = (part.value for part in parts if isinstance(part, ast.Constant))
                kinds = frozenset(word for word in words if isinstance(word, str))
                yield kinds, Place(self._names.path(code.module), node.lineno)

    def _after_override(self, code: Code, witness: Checkpoint) -> Iterator[Checkpoint]:
        """One checkpoint as the override leaves it, on each way through it."""

        def run(path: Path) -> list[Checkpoint]:
            self.run.path = path
            made = self.run.call(code, [self.made([witness])], {})
            return list(self._read(made, path.alive))

        for answer, _ in self._ends(run, 1, code):
            yield from answer

    def _ends(
        self, run: Callable[[Path], _Answer], count: int, code: Code
    ) -> Iterator[tuple[_Answer, tuple[Question, ...]]]:
        try:
            yield from explore(run, tuple(range(count)))
        except TooMany as problem:
            self._note(str(problem), code)

    def _method(self, name: str) -> Code | None:
        found = self._names.method(self._config, name)
        return None if found is None else Code(found[0].module, found[1], found[0])

    def _note(self, what: str, code: Code) -> None:
        where = Place(self._names.path(code.module), code.node.lineno)
        if (what, where) not in self.problems:
            self.problems.append((what, where))

    def made(self, checkpoints: Sequence[Checkpoint]) -> Thing:
        """A configuration of which no more is known than what the checkpoints say."""
        draft = self._rule.draft
        names = each([one.architecture for one in checkpoints])
        attrs: dict[str, Value] = {
            draft.architectures: [names],
            draft.model_type: each([one.model_type for one in checkpoints]),
        }
        for key in dict.fromkeys(key for one in checkpoints for key, _ in one.others):
            unknown = Thing(f"{draft.checkpoint}.{key}")
            attrs[key] = each([dict(one.others).get(key, unknown) for one in checkpoints])
        inherited = {draft.model_type: OTHER}
        return Thing(draft.checkpoint, attrs=attrs, plain=True, inherited=inherited)

    def _read(self, made: Value, alive: Iterable[int]) -> Iterator[Checkpoint]:
        """What is known of each configuration after code has run over it."""
        draft = self._rule.draft
        if not isinstance(made, Thing):
            return
        names, kinds = (made.attrs.get(one) for one in (draft.architectures, draft.model_type))
        asked = sorted((self._asked & made.attrs.keys()) - {draft.architectures, draft.model_type})
        for number in alive:
            match of_one(names, number):
                case [str() as architecture, *_]:
                    kind = of_one(kinds, number)
                    held = ((key, of_one(made.attrs[key], number)) for key in asked)
                    others = tuple(
                        (key, value) for key, value in held if isinstance(value, int | bool | str)
                    )
                    model_type = kind if isinstance(kind, str) else OTHER
                    yield Checkpoint(architecture, model_type, others)
                case _:
                    continue

    def _settle_converted(self, method: str) -> Iterator[Settled]:
        """The same for checkpoints in a format of their own that names this method."""
        module, _, name = self._rule.converted.class_.rpartition(".")
        found = tuple(dict.fromkeys(one for one, named in self._converted if named == method))
        if found:
            yield from self._settle(method, found, Ref(module, name))

    @cached_property
    def _converted(self) -> list[tuple[Checkpoint, str]]:
        """What checkpoints in a format of their own are converted to, and the method they name."""
        rule = self._rule.converted
        sketch = self._names.sketch(rule.module)
        found: list[tuple[Checkpoint, str]] = []
        functions = map(sketch.function, sketch.top) if sketch is not None else ()
        for node in functions:
            for mark in node.decorator_list if node is not None else ():
                kind = _format(mark, rule.decorator)
                if kind is not None and node is not None:
                    found += self._convert(Code(rule.module, node), kind)
        return found

    def _convert(self, code: Code, kind: str) -> list[tuple[Checkpoint, str]]:
        """Run one conversion, and the code that reads the method off such a checkpoint."""
        rule = self._rule.converted
        module, _, name = rule.class_.rpartition(".")
        settle = self._names.method(Ref(module, name), rule.settle)

        def run(path: Path) -> list[tuple[Checkpoint, str]]:
            self.run.path = path
            given = Thing("config", attrs={rule.key: kind})
            made = Thing(self._rule.draft.checkpoint)
            self.run.call(code, [given, made], {})
            method: Value = kind
            if settle is not None:
                owner = Code(settle[0].module, settle[1], settle[0])
                named = self.run.call(owner, [settle[0], given], {})
                method = named.get(self._rule.config.method) if isinstance(named, dict) else None
            return [(one, str(method)) for one in self._read(made, path.alive)]

        return [one for answer, _ in self._ends(run, 1, code) for one in answer]

    def _settle(
        self, method: str, checkpoints: Sequence[Checkpoint], cls: Ref | None = None
    ) -> Iterator[Settled]:
        """Run the configuration's own settling for a method, over all checkpoints at once."""
        code = self._method(self._rule.config.settle)
        if code is None:
            yield from (Settled(method, one) for one in checkpoints)
            return
        function: Code = code
        made = replace(self.made(checkpoints), cls=cls)

        def run(path: Path) -> list[Settled]:
            self.run.path = path
            config = self.configuration(method, None)
            maker = Maker(self._rule.draft.overrides, lambda given: self.draft(made, given))
            self.run.makers = {self._draft_class(): maker}
            try:
                self.run.call(function, [config], {})
            finally:
                self.run.makers = {}
            return list(self._outcome(config, path.alive))

        for answer, _ in self._ends(run, len(checkpoints), function):
            yield from answer

    def _outcome(self, config: Thing, alive: Iterable[int]) -> Iterator[Settled]:
        draft = config.attrs.get(self._rule.draft.attribute)
        method = config.attrs.get(self._rule.config.method)
        made = draft.attrs.get(self._rule.draft.checkpoint) if isinstance(draft, Thing) else None
        for number in alive:
            name = of_one(method, number)
            for after in self._read(made, [number]):
                if isinstance(name, str):
                    yield Settled(name, after)

    def _draft_class(self) -> Ref:
        module, _, name = self._rule.draft.class_.rpartition(".")
        return Ref(module, name)

    def draft(self, checkpoint: Thing, overrides: Value) -> Thing:
        """The draft model's configuration, with what the engine puts over the checkpoint's own.

        The override itself has been run already, unless it is given more than the checkpoint.
        """
        rule = self._rule.draft
        made: Value = checkpoint.copied()
        match overrides:
            case dict():
                made = self._retyped(overrides)
            case Bound(code=Code() as code, named=named) if any(v is not None for _, v in named):
                made = self.run.call(code, [made], dict(named))
            case _:
                pass
        aliases = {rule.architectures: f"{rule.checkpoint}.{rule.architectures}"}
        attrs: dict[str, Value] = {rule.checkpoint: made, rule.name: OTHER}
        return Thing(rule.attribute, attrs=attrs, aliases=aliases, plain=True)

    def _retyped(self, overrides: dict[Value, Value]) -> Value:
        """What a checkpoint is when its model type is given by hand: what that type makes of it."""
        kind = overrides.get(self._rule.draft.model_type)
        typed = self._typed(kind) if isinstance(kind, str) else None
        made = Thing(self._rule.draft.checkpoint, plain=True) if typed is None else typed.copied()
        for key, value in overrides.items():
            made.set(str(key), value)
        return made

    def _typed(self, kind: str) -> Thing | None:
        """A configuration of the tree's own class for a model type; None where it has none."""
        rule = self._rule.types
        table, modules = (self._keywords(dotted) for dotted in (rule.table, rule.modules))
        cls = table.get(kind)
        module = modules.get(cls) if cls is not None else None
        found = self._names.member(module, cls) if module is not None and cls is not None else None
        return self.run.construct(found, [], {}) if isinstance(found, Ref) else None

    def _keywords(self, dotted: str) -> dict[str, str]:
        """The strings of a table that is a dict, or a call with keywords."""
        module, _, name = dotted.rpartition(".")
        sketch = self._names.sketch(module)
        match sketch.value(name) if sketch is not None else None:
            case ast.Dict(keys=keys, values=values):
                pairs = [
                    (getattr(key, "value", None), value)
                    for key, value in zip(keys, values, strict=True)
                ]
            case ast.Call(keywords=keywords):
                pairs = [(keyword.arg, keyword.value) for keyword in keywords]
            case _:
                pairs = []
        return {
            str(key): value.value
            for key, value in pairs
            if isinstance(value, ast.Constant) and isinstance(value.value, str)
        }

    def configuration(self, method: Value, draft: Thing | None) -> Thing:
        """A speculative configuration with this method and draft."""
        target = Thing(self._rule.draft.target, attrs={self._rule.draft.overrides: None})
        attrs: dict[str, Value] = {
            self._rule.config.method: method,
            self._rule.draft.target: target,
            self._rule.draft.name: OTHER,
        }
        attrs[self._rule.draft.attribute] = draft
        return Thing("", cls=self._config, attrs=attrs)


def _format(mark: ast.expr, decorator: str) -> str | None:
    """The name that a decorator ``@decorator("name")`` gives to a function."""
    match mark:
        case ast.Call(func=ast.Name(id=known), args=[ast.Constant(value=str() as kind)]):
            return kind if known == decorator else None
        case _:
            return None


def each(values: Sequence[Value]) -> Value:
    """A value that differs between checkpoints; itself where there is one checkpoint."""
    return values[0] if len(values) == 1 else Each(tuple(values))


def _is_set_operation(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in (
        "intersection", "isdisjoint", "issubset", "startswith", "endswith",
    )  # fmt: skip
