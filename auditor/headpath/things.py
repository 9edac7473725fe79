"""What a term is: its class, whether it may be None, which method a name finds."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import Enum

from auditor.classes import Found, Lookup, Missing, Open, linearise, lookup, own_attribute
from auditor.headpath.attributes import Attribute, Attributes, dotted_name
from auditor.headpath.bodies import Bodies, is_nested_deeply
from auditor.headpath.changes import foreign_class
from auditor.headpath.stores import mangled
from auditor.headpath.terms import (
    Changed,
    Constant,
    Global,
    Item,
    Logits,
    Module,
    Operation,
    Param,
    Part,
    Self,
    Sizes,
    Stored,
    Term,
    TopTokens,
)
from auditor.ruleset.heads import HeadRule
from auditor.values import Builtin, ClassValue, Foreign, Function, Place, Value


def _is_last(function: ast.FunctionDef, own: Found | Open) -> bool:
    """Whether a ``def`` is what binds the name in the end: nothing after it does so again."""
    return isinstance(own, Found) and own.where.line == function.lineno


def _bare(name: str, cls: ClassValue) -> str:
    """A name as the body of ``cls`` spells it: ``__x`` for its own ``_C__x``."""
    if not name.startswith("_") or "__" not in name:
        return name
    prefix = f"_{cls.qualname.rpartition('.')[2].lstrip('_')}"
    rest = name.removeprefix(prefix)
    return rest if mangled(rest, cls.qualname.rpartition(".")[2]) == name else name


def _is_instance(value: Attribute) -> bool:
    """Whether a value is an instance that a call has made, and so not None."""
    named = isinstance(value.cls, ClassValue) or foreign_class(value.cls)
    return value.call is not None and (named or _is_tensor(value.cls))


def _is_tensor(made: ClassValue | Foreign | None) -> bool:
    return isinstance(made, Foreign) and made.name.startswith("torch.")


#: Methods of a class by which it has a say in how its attributes are read and set.
_HOOKS = ("__getattr__", "__getattribute__", "__setattr__", "__delattr__")


def _names_to(part: Term) -> list[str | None]:
    """The names by which a part of the model is reached, the last first; None for an item."""
    names: list[str | None] = []
    while isinstance(part, Part | Item):
        names.append(part.name if isinstance(part, Part) else None)
        part = part.owner
    return names


class _NotAsked(Enum):
    """What is known of a term before its class was asked for; None is an answer."""

    NOT_ASKED = 0


_NOT_ASKED = _NotAsked.NOT_ASKED


class Things:
    """Knows the classes behind the terms of one draft class."""

    def __init__(self, root: ClassValue, bodies: Bodies, rule: HeadRule) -> None:
        self._root = root
        self._bodies = bodies
        self._attributes = Attributes(bodies)
        self._rule = rule
        # Terms are shared, and asked again and again; by identity, with the term kept alive.
        self._classes: dict[int, tuple[Term, ClassValue | Foreign | None]] = {}
        # Parts that are reached by the same names are of one class, whatever chooses an item.
        self._settled: dict[tuple[str | None, ...], ClassValue | Foreign | None] = {}
        self._kinds: dict[tuple[int, tuple[str, ...]], bool] = {}
        self._holders: dict[int, tuple[Term, bool]] = {}
        self._hooked: dict[int, tuple[ClassValue, bool]] = {}
        self._by_name: dict[tuple[ClassValue, str], Lookup] = {}
        self._methods: dict[
            tuple[ClassValue, str, ClassValue | None], tuple[ClassValue, ast.FunctionDef] | None
        ] = {}
        self._sizes = Sizes()

    def class_of(self, term: Term) -> ClassValue | Foreign | None:
        """The class that a term is an instance of, as far as ``__init__`` says."""
        if not isinstance(term, Self | Part | Item):
            return None
        known = self._classes.get(id(term))
        if known is None:
            known = self._classes[id(term)] = (term, self._class_of(term))
        return known[1]

    def _class_of(self, term: Term) -> ClassValue | Foreign | None:
        match term:
            case Self():
                return self._root
            case Part(owner=owner, name=name):
                return self._class_of_part(owner, name, item=False)
            case Item(owner=Part(owner=owner, name=name)):
                return self._class_of_part(owner, name, item=True)
            case _:
                return None

    def _class_of_part(self, owner: Term, name: str, item: bool) -> ClassValue | Foreign | None:
        if not isinstance(self.class_of(owner), ClassValue):
            return None
        key = (*_names_to(owner), name, None) if item else (*_names_to(owner), name)
        known = self._settled.get(key, _NOT_ASKED)
        if isinstance(known, _NotAsked):
            known = self._settled[key] = self._settled_class(owner, name, item)
        return known

    def _settled_class(self, owner: Term, name: str, item: bool) -> ClassValue | Foreign | None:
        """The class that ``__init__`` says, unless something else may set the attribute."""
        values = self.values_of(owner, name)
        if not values or self.changed(owner, name) is not None:
            return None
        called = ("forward", "__call__", *self._rule.top_tokens_methods)
        if any(self.changed_by_others(Part(owner, name), method) for method in called):
            return None
        return self._one_class(values, item)

    def changed(self, owner: Term, name: str) -> Place | None:
        """Where the model, or the file of a class on the way, may set ``owner.name`` anew."""
        cls = self.class_of(owner)
        if not isinstance(cls, ClassValue):
            return None
        return self._attributes.changed(cls, name) or self.changed_by_others(owner, name)

    def changed_by_others(self, owner: Term, name: str) -> Place | None:
        """Where a class that holds ``owner``, or its file, may set ``owner.name``."""
        while isinstance(owner, Part | Item):
            owner = owner.owner
            cls = self.class_of(owner)
            if isinstance(cls, ClassValue):
                found = self._attributes.changed_by(cls, name)
                if found is not None:
                    return found
        return None

    def elsewhere(self, owner: Term, name: str) -> Place | None:
        """Where something other than ``__init__`` may set ``owner.name``, the engine included."""
        return self.changed(owner, name) or self._attributes.outside(name)

    def values_of(self, owner: Term, name: str) -> tuple[Attribute, ...]:
        """What ``owner.name`` may be, as far as ``__init__`` says."""
        cls = self.class_of(owner)
        return self._attributes.of(cls, name) if isinstance(cls, ClassValue) else ()

    @staticmethod
    def _one_class(values: Sequence[Attribute], item: bool) -> ClassValue | Foreign | None:
        found = [value.item if item else value.cls for value in values if not value.is_none]
        first = found[0] if found else None
        same = all(cls is first or cls == first for cls in found)
        return first if same else None

    def may_be_none(self, term: Term) -> bool | None:
        """Whether an attribute is None: always (True), never (False), or it depends (None)."""
        match term:
            case Constant(value=value):
                return value is None
            case Part(owner=owner, name=name):
                return self._none(owner, name)
            case Operation(name="and" | "or" | "*"):
                return None
            case Module(kind=kind):
                return False if kind == "norm" else None
            case Logits() | TopTokens() | Stored() | Changed() | Operation() | Self():
                return False
            case _:
                return None

    def _none(self, owner: Term, name: str) -> bool | None:
        values = self.values_of(owner, name)
        cls = self.class_of(owner)
        if not values or not isinstance(cls, ClassValue) or self.elsewhere(owner, name):
            return None
        if self.is_hooked(cls) or not isinstance(self.found(cls, name), Missing):
            return None
        if all(value.is_none for value in values):
            return True
        made = all(_is_instance(value) for value in values)
        return False if made or all(value.item for value in values) else None

    def method(
        self, cls: ClassValue, name: str, after: ClassValue | None = None
    ) -> tuple[ClassValue, ast.FunctionDef] | None:
        """The method that ``cls().name`` finds; with ``after``, what ``super()`` finds.

        None where no class of the tree defines it with a ``def`` in its body, or where something
        that is no such ``def`` comes first: an assignment, a base that is not known.
        """
        key = (cls, name, after)
        if key not in self._methods:
            self._methods[key] = self._method(cls, name, after)
        return self._methods[key]

    def _method(
        self, cls: ClassValue, name: str, after: ClassValue | None
    ) -> tuple[ClassValue, ast.FunctionDef] | None:
        members = linearise(cls)
        if after is not None and after in members:
            members = members[members.index(after) + 1 :]
        for member in members:
            if isinstance(member, ClassValue):
                bare = _bare(name, member)
                own = own_attribute(member, bare)
                if own is not None:
                    function = self._bodies.functions(member).get(bare)
                    if function is None or is_nested_deeply(function):
                        return None
                    return (member, function) if _is_last(function, own) else None
            elif not isinstance(member, Foreign | Builtin):
                return None
        return None

    def _is_transparent(self, function: ast.FunctionDef, owner: ClassValue) -> bool:
        """Whether a method does what its body says, whatever decorates it."""
        return all(
            self._decorator(node, owner) in self._rule.transparent_decorators
            for node in function.decorator_list
        )

    def _decorator(self, node: ast.expr, owner: ClassValue) -> str:
        """The dotted name of a decorator, by what it is in its module."""
        dotted = dotted_name(node.func if isinstance(node, ast.Call) else node)
        value = self._bodies.named(owner, dotted) if dotted else None
        match value:
            case ClassValue():
                return value.dotted
            case Foreign(name=name):
                return name
            case Function():
                return f"{value.module.name}.{value.facts.name}"
            case _:
                return dotted

    def found(self, cls: ClassValue, name: str) -> Lookup:
        """What the class has under a name, private names as the bodies of classes mean them."""
        known = self._by_name.get((cls, name))
        if known is None:
            known = self._by_name[cls, name] = self._lookup(cls, name)
        return known

    @staticmethod
    def _lookup(cls: ClassValue, name: str) -> Lookup:
        for member in linearise(cls):
            if isinstance(member, ClassValue) and _bare(name, member) != name:
                return own_attribute(member, _bare(name, member)) or lookup(cls, name)
        return lookup(cls, name)

    def is_hooked(self, cls: ClassValue) -> bool:
        """Whether a class of the tree has a say in how its attributes are read and set."""
        known = self._hooked.get(id(cls))
        if known is None:
            hooked = any(not isinstance(lookup(cls, hook), Missing) for hook in _HOOKS)
            known = self._hooked[id(cls)] = (cls, hooked)
        return known[1]

    def may_have(self, cls: ClassValue, name: str) -> bool:
        """Whether an instance may have an attribute, by the tree or by a base outside it."""
        return bool(
            self._attributes.of(cls, name)
            or self._attributes.elsewhere(cls, name)
            or not isinstance(self.found(cls, name), Missing)
            or self.is_hooked(cls)
            or self.by_base(cls, name)
        )

    def by_base(self, cls: ClassValue, name: str) -> bool:
        """Whether a base outside the tree gives instances this attribute, or might."""
        for member in linearise(cls):
            if isinstance(member, Foreign):
                known = member.name in self._rule.plain_bases
                if not known or name in self._rule.module_attributes:
                    return True
            elif isinstance(member, Builtin) and hasattr(object, name):
                return True
        return False

    def holds_processor(self, term: Term) -> bool:
        """Whether a term is the logits processor, or has it as a part."""
        if isinstance(term, Constant | Global | Param):
            return False
        known = self._holders.get(id(term))
        if known is None:
            holds = self.is_processor(self.class_of(term)) or any(
                map(self.holds_processor, term.parts())
            )
            known = self._holders[id(term)] = (term, holds)
        return known[1]

    def is_processor(self, cls: ClassValue | Foreign | None) -> bool:
        """Whether a class turns a head and hidden states into logits as the known one does.

        A class that derives from it and has methods of its own may do something else.
        """
        if not self.is_a(cls, self._rule.processors) or not isinstance(cls, ClassValue):
            return False
        for member in linearise(cls):
            if isinstance(member, ClassValue):
                if member.dotted in self._rule.processors:
                    return True
                if self._bodies.functions(member).keys() - {"__init__"}:
                    return False
        return False

    def is_plainly(self, cls: ClassValue | Foreign | None, names: Sequence[str]) -> bool:
        """Whether calling an instance does what instances of one of ``names`` do.

        A class that derives from one and has a ``forward`` or ``__call__`` of its own does not.
        """
        if not self.is_a(cls, names):
            return False
        for member in linearise(cls) if isinstance(cls, ClassValue) else ():
            if self._derives_by_name(member, names):
                return True
            own = ("forward", "__call__")
            if not isinstance(member, ClassValue) or any(own_attribute(member, n) for n in own):
                return False
        return isinstance(cls, Foreign)

    def is_a(self, cls: ClassValue | Foreign | None, names: Sequence[str]) -> bool:
        """Whether a class is, derives from, or stands in a module of, one of ``names``."""
        if isinstance(cls, Foreign):
            return cls.name in names
        if cls is None:
            return False
        key = (id(cls), tuple(names))
        if key not in self._kinds:
            self._kinds[key] = self._derives(cls, names)
        return self._kinds[key]

    @staticmethod
    def _derives(cls: ClassValue, names: Sequence[str]) -> bool:
        return any(Things._derives_by_name(member, names) for member in linearise(cls))

    @staticmethod
    def _derives_by_name(member: Value, names: Sequence[str]) -> bool:
        dotted = member.dotted if isinstance(member, ClassValue) else getattr(member, "name", "")
        return any(dotted == name or dotted.startswith(f"{name}.") for name in names)

    @staticmethod
    def _place(owner: ClassValue | None, node: ast.AST) -> Place:
        path = owner.module.path if owner is not None else ""
        return Place(path, getattr(node, "lineno", 0))
