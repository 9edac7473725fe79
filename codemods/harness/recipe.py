"""What a test must build so that ``compute_logits`` and ``get_top_tokens`` can run: no more.

The head path names every part of the model that the two methods read. A part is *real* where it
decides the tokens (the logits processor, a head, a norm), and *bare* where it only holds others: an
instance of its own class without its ``__init__``, so that the class's own methods run on it. What
the tree does not say well enough to build is a :class:`NotBuildable` with the reason.
"""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Iterator

import msgspec

from auditor.analysis import Analysis
from auditor.classes import Missing, lookup
from auditor.headpath.bodies import SourceBodies
from auditor.headpath.construction import Construction
from auditor.headpath.path import Branch
from auditor.headpath.state import Frame, Guard, State, Values
from auditor.headpath.symbolic import Symbolic
from auditor.headpath.terms import (
    Apply,
    Constant,
    Global,
    Item,
    Operation,
    Param,
    Part,
    Self,
    Term,
    is_model_part,
    show,
    walk,
)
from auditor.ruleset.harness import harness_rule
from auditor.ruleset.heads import head_rule
from auditor.values import ClassValue, Foreign, Place


class NotBuildable(Exception):  # noqa: N818 - an outcome, told to the caller
    """A part that a test cannot build alone, and why."""


class Real(msgspec.Struct, frozen=True, tag=True):
    """A part that is built as its own ``__init__`` would: a class and the source of arguments."""

    cls: str
    arguments: tuple[str, ...]


class Processor(msgspec.Struct, frozen=True, tag=True):
    """The logits processor; ``scale`` where the model gives one."""

    cls: str
    arguments: tuple[str, ...]


class Head(msgspec.Struct, frozen=True, tag=True):
    """A head with a vocabulary shard, of its own class."""

    cls: str
    bias: bool


class Number(msgspec.Struct, frozen=True, tag=True):
    """A whole number, by the name of a constant of the test."""

    constant: str


class Table(msgspec.Struct, frozen=True, tag=True):
    """The table that moves draft ids to target ids, as offsets."""


class Nothing(msgspec.Struct, frozen=True, tag=True):
    """None, where a method asks whether a part is there."""


class Bare(msgspec.Struct, tag=True):
    """An instance of ``cls`` with nothing but these attributes."""

    cls: str
    parts: dict[str, Thing] = msgspec.field(default_factory=dict)


class Several(msgspec.Struct, tag=True):
    """A container with one ``item`` a draft step, under a key made from the step.

    Attributes:
        cls: the dotted class of the container (``torch.nn.ModuleDict``).
        key: the source of the key for a step called ``step``.
    """

    cls: str
    key: str
    item: Thing | None = None

    @property
    def listed(self) -> bool:
        """Whether the items have places and no keys."""
        return self.cls.endswith("List")


#: The class of what holds no more than numbers.
_NAMESPACE = "types.SimpleNamespace"

Thing = Nothing | Real | Processor | Head | Number | Table | Bare | Several


class Recipe(msgspec.Struct):
    """A draft model for a test.

    Attributes:
        model: what is built.
        name: what tells it from the other recipes of the same class: the parts that are None.
        step: the parameter for the draft step that the methods take, or empty.
        per_step: whether the tokens depend on the step.
        remap: whether draft ids are moved to target ids.
        pre_head: whether something happens to the hidden states before the head.
    """

    model: Bare
    name: str
    step: str
    per_step: bool
    remap: bool
    pre_head: bool

    def classes(self) -> frozenset[str]:
        """The dotted classes of the model and of the parts that hold others."""
        return frozenset(_classes(self.model))


def _classes(thing: Thing | None) -> Iterator[str]:
    match thing:
        case Bare(cls=cls, parts=parts):
            yield cls
            for part in parts.values():
                yield from _classes(part)
        case Several(item=item):
            yield from _classes(item)
        case _:
            return


def recipes(analysis: Analysis, bodies: SourceBodies, step: str) -> tuple[Recipe, ...]:
    """What to build for the class of an analysis, once for each way to its head.

    Args:
        analysis: what is known of the class.
        bodies: the bodies of the classes of the same run.
        step: what the engine calls the argument for the draft step.

    Raises:
        NotBuildable: a part cannot be built alone.
    """
    return _Recipe(analysis, bodies, step).made()


class _Reading(Symbolic):
    """A run of a method that takes note of every part of the model that it looks up.

    ``reads`` maps a part as the method spells it to the part that it is another name for.
    """

    def __init__(self, root: ClassValue, bodies: SourceBodies) -> None:
        super().__init__(root, bodies, head_rule())
        self.reads: dict[Term, Term] = {}

    def _part(self, owner: Term, name: str, place: Place, state: State, frame: Frame) -> Values:
        part, ends = Part(owner, name), super()._part(owner, name, place, state, frame)
        if part not in state.stores and is_model_part(part):
            cls = self.class_of(owner)
            known = isinstance(cls, ClassValue) and not isinstance(lookup(cls, name), Missing)
            if not known:
                self.reads[part] = ends[0][0]
        return ends

    def _item(self, owner: Term, index: Term, place: Place, state: State) -> tuple[Term, State]:
        term, after = super()._item(owner, index, place, state)
        if isinstance(term, Item) and is_model_part(term):
            self.reads[term] = term
        return term, after


class _Recipe:
    def __init__(self, analysis: Analysis, bodies: SourceBodies, step: str) -> None:
        if analysis.logits is None:
            raise NotBuildable("the class has no logits")
        self._cls = analysis.cls
        self._path = analysis.logits
        self._symbolic = _Reading(analysis.cls, bodies)
        self._symbolic.run(self._path.method)
        self._construction = Construction(self._symbolic, bodies, analysis.cls)
        self._rule = harness_rule()
        self._step = step
        self._heads: set[Term] = set()
        self._processors: set[Term] = set()
        self._tables: set[Term] = set()
        self._missing: set[Term] = set()

    def made(self) -> tuple[Recipe, ...]:
        """A recipe for each way that a call of the engine can take."""
        ways = [b for b in self._path.branches if b.head_term is not None and self._taken(b)]
        if not ways:
            raise NotBuildable("no way through the method reaches a head without other arguments")
        heads = [branch.head_term for branch in ways if branch.head_term is not None]
        self._heads = self._spelled({head.head for head in heads})
        self._processors = self._spelled({head.processor for head in heads})
        return tuple(self._of(branch, ways) for branch in ways)

    def _of(self, branch: Branch, ways: list[Branch]) -> Recipe:
        """The recipe for one way; a method may look at what only another way needs."""
        head = branch.head_term
        assert head is not None
        tables = {p.by for p in branch.post if p.kind == "remap" and p.by is not None}
        self._tables = self._spelled(tables)
        self._missing = {part for part in map(_said_none, branch.guards) if part is not None}
        model = Bare(self._cls.dotted)
        for term in self._read(branch):
            self._place(model, term)
        params = {part.name for part in walk(branch.result) if isinstance(part, Param)}
        takes = self._takes_step()
        return Recipe(
            model,
            ", ".join(f"no {show(part)}" for part in sorted(self._missing, key=show)),
            self._step if takes else "",
            takes and (self._step in params or bool(branch.stored)),
            bool(self._tables),
            not isinstance(head.hidden, Param),
        )

    def _takes_step(self) -> bool:
        found = self._symbolic.method(self._cls, self._path.method)
        if found is None:
            return False
        arguments = found[1].args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        return any(argument.arg == self._step for argument in every)

    def _taken(self, branch: Branch) -> bool:
        """Whether the engine's calls, with parts as they are built here, go this way."""
        return all(self._holds(guard.test) in (guard.holds, None) for guard in branch.guards)

    def _holds(self, test: Term) -> bool | None:
        """A condition as it comes out in the test: arguments have their defaults, parts exist."""
        match test:
            case Operation(name="is", operands=(Param(), Constant(value=None))):
                return True
            case Operation(name="not", operands=(inner,)):
                inside = self._holds(inner)
                return None if inside is None else not inside
            case _ if show(test).startswith("hasattr("):
                return True
            case _:
                return None

    def _spelled(self, parts: set[Term]) -> set[Term]:
        """Parts with all their other names."""
        return parts | {name for name, meant in self._symbolic.reads.items() if meant in parts}

    def _read(self, branch: Branch) -> Iterator[Term]:
        """The parts of the model that the method reads, the longest of each chain."""
        reads = [one for one in self._symbolic.reads if one not in branch.stored]
        inner = {owner for one in reads for owner in _owners(one)}
        for term in reads:
            if term not in inner and not self._missing.intersection(_owners(term)):
                yield term

    # --- building

    def _place(self, model: Bare, term: Term) -> None:
        """Add what ``term`` is to the model, with all that holds it."""
        chain = [*reversed(list(_owners(term))), term]
        holder: Bare | Several = model
        for one in chain[1:]:
            if isinstance(holder, Several):
                if not isinstance(one, Item):
                    raise NotBuildable(f"{show(one)} is an attribute of a container")
                self._check_place(holder, one.index)
                if holder.item is None:
                    holder.item = self._item(one, last=one is term)
                if not isinstance(holder.item, Bare):
                    return  # built whole
                holder = holder.item
                continue
            if not isinstance(one, Part):
                raise NotBuildable(f"{show(one)} is an item of something unknown")
            known = holder.parts.get(one.name)
            if known is None:
                known = holder.parts[one.name] = self._thing(one, chain)
            if not isinstance(known, Bare | Several):
                return  # built whole: what is read of it is its own business
            holder = known

    def _thing(self, term: Part, chain: list[Term]) -> Thing:
        position = next(i for i, one in enumerate(chain) if one is term)
        after = chain[position + 1] if position + 1 < len(chain) else None
        if term in self._missing:
            return Nothing()
        if term in self._heads:
            return self._head(term)
        if term in self._processors:
            return self._processor(term)
        if term in self._tables:
            return Table()
        values = self._symbolic.values_of(term.owner, term.name)
        if values and all(value.is_none for value in values):
            return Nothing()  # as a model has it that was given none
        if isinstance(after, Item):
            return self._container(term, after)
        whole = self._real(term)
        if whole is not None:
            return whole
        if after is not None:
            known = isinstance(self._symbolic.class_of(term), ClassValue)
            return Bare(self._class_name(term) if known else _NAMESPACE)
        return self._number(term)

    def _item(self, term: Item, last: bool) -> Thing:
        """What a container holds a step; ``last`` where the method reads the item itself."""
        if term in self._heads:
            return self._head(term)
        whole = self._real(term)
        if whole is None and last and self._used(term):
            raise NotBuildable(f"nothing says how {show(term)} is built")
        return whole or Bare(self._class_name(term))

    def _used(self, term: Term) -> bool:
        """Whether the logits depend on a part; a method may look one up for nothing."""
        return any(term in walk(branch.result) for branch in self._path.branches)

    def _class_name(self, term: Term) -> str:
        cls = self._symbolic.class_of(term)
        if isinstance(cls, ClassValue):
            return _importable(cls)
        raise NotBuildable(f"the class of {show(term)} is not known")

    def _head(self, term: Part | Item) -> Head:
        cls = self._symbolic.class_of(term)
        built = self._construction.built(term)
        bias = any(one.arguments.get("bias") == "True" for one in built)
        return Head(_importable(cls) if isinstance(cls, ClassValue) else "", bias)

    def _processor(self, term: Part) -> Processor:
        cls = self._symbolic.class_of(term)
        if not isinstance(cls, ClassValue):
            raise NotBuildable(f"the class of {show(term)} is not known")
        scaled = any("scale" in one.arguments for one in self._construction.built(term))
        return Processor(_importable(cls), ("vocab_size", *(("scale=0.5",) if scaled else ())))

    def _container(self, term: Part, item: Item) -> Several:
        cls = self._symbolic.class_of(term)
        if not isinstance(cls, Foreign):
            raise NotBuildable(f"what kind of container {show(term)} is, is not known")
        return Several(cls.name, self._key(item.index))

    def _check_place(self, holder: Several, index: Term) -> None:
        """Check that the items that the test makes are where the method looks for one.

        Raises:
            NotBuildable: they are not.
        """
        key = self._key(index)
        if not holder.listed:
            found = key == holder.key
        else:
            steps = self._rule.constants["NUM_STEPS"]
            found = key == "step" or (
                isinstance(index, Constant)
                and isinstance(index.value, int)
                and -steps <= index.value < steps
            )
        if not found:
            raise NotBuildable(f"a test has no item {key} of a {holder.cls}")

    def _key(self, index: Term) -> str:
        """The source of a key, for the steps that the test asks for."""
        match index:
            case Constant(value=value):
                return _literal(value)
            case Param(name=name) if name == self._step:
                return "step"
            case Part() as part:
                return self._number(part).constant
            case Operation(name="%", operands=(left, Part())):
                return self._key(left)
            case Operation(name="+" | "-" as sign, operands=(left, right)):
                return f"{self._key(left)} {sign} {self._key(right)}"
            case Apply(function=Global(name="str" | "builtins.str"), arguments=(inner,)):
                return f"str({self._key(inner)})"
            case _:
                raise NotBuildable(f"the key {show(index)} cannot be told for a step")

    def _number(self, term: Part) -> Number:
        """A number: how many steps there are, where their layers begin, a configuration's field."""
        results = [branch.result for branch in self._path.branches]
        for root in (*results, *self._symbolic.reads):
            for part in walk(root):
                match part:
                    case Operation(name="%", operands=(_, right)) if right == term:
                        return Number("NUM_STEPS")
                    case Operation(name="+", operands=operands) if term in operands:
                        return Number("FIRST_LAYER")
        size = self._field(term.name)
        if size is None:
            raise NotBuildable(f"nothing says what {show(term)} is")
        # The table's ids are those of the target, whose vocabulary is the larger one.
        return Number("TARGET_SIZE" if self._tables and term.name == "vocab_size" else size)

    def _real(self, term: Part | Item) -> Real | None:
        """A part with its own constructor call, where each argument is known to the test."""
        cls = self._symbolic.class_of(term)
        if not isinstance(cls, ClassValue):
            return None
        built = self._construction.built(term)
        if len(built) != 1:
            return None
        call = ast.parse(built[0].text, mode="eval").body
        if not isinstance(call, ast.Call):
            return None
        positional = [self._value(node) for node in call.args]
        named = [
            (keyword.arg, self._value(keyword.value))
            for keyword in call.keywords
            if keyword.arg not in self._rule.arguments.dropped
        ]
        if None in positional or any(value is None for _, value in named):
            return None
        keywords = [f"{name}={value}" for name, value in named]
        return Real(_importable(cls), (*filter(None, positional), *keywords))

    def _value(self, node: ast.expr) -> str | None:
        """The source of an argument in the test, or None where the test does not know it."""
        match node:
            case ast.Constant():
                return _literal(node.value)
            case ast.Attribute(attr=name):
                return self._field(name)
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                return self._field(name)
            case _:
                return None

    def _field(self, name: str) -> str | None:
        for one in self._rule.fields:
            if fnmatch.fnmatchcase(name, one.name):
                return one.constant
        return None


def _literal(value: object) -> str:
    """The source of a constant, a string in the quotes that a formatter wants."""
    plain = isinstance(value, str) and value.isprintable() and not set(value) & {'"', "\\"}
    return f'"{value}"' if plain else repr(value)


def _importable(cls: ClassValue) -> str:
    """The dotted class, of which a test imports the last name.

    Raises:
        NotBuildable: it is defined inside a class or a function.
    """
    if "." in cls.qualname:
        raise NotBuildable(f"{cls.dotted} cannot be imported by its name")
    return cls.dotted


def _said_none(guard: Guard) -> Term | None:
    """The part of the model that a condition says is None."""
    match guard.test:
        case Operation(name="is", operands=(Part() as part, Constant(value=None))) if guard.holds:
            return part
        case _:
            return None


def _owners(term: Term) -> Iterator[Term]:
    """What holds a part, from the inside out, the model itself last."""
    while isinstance(term, Part | Item):
        term = term.owner
        yield term
    if not isinstance(term, Self):
        raise NotBuildable(f"{show(term)} is no part of the model")
