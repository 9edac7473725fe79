"""Transformers configurations: what a bare one does, and what an installed Transformers says.

``PreTrainedConfig`` makes attributes of its keyword arguments (``rules/checkpoints.toml`` holds its
fields). The classes below it, and their defaults, are known to Transformers alone.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from auditor.checkpoints import operations as ops
from auditor.checkpoints.calls import Calls
from auditor.checkpoints.checked import DECODERS, checked
from auditor.checkpoints.conventions import BaseRule
from auditor.checkpoints.lookups import MISSING
from auditor.checkpoints.values import (
    CannotFollow,
    ClassValue,
    Config,
    External,
    Frame,
    Function,
    HeldBack,
    Native,
    Object,
    Raised,
    Unknown,
    Value,
    attrs_of,
    class_of,
    instance,
)
from auditor.contracts.names import Names, Outside, Ref
from auditor.values import Place


@dataclass(frozen=True, slots=True)
class OutsideClass:
    """What is known of a configuration class outside the tree.

    Attributes:
        name: its own name.
        attributes: class attributes.
        attribute_map: other names of attributes.
        computed: properties, methods and whatever else cannot simply be read or set.
        order: the names of the class and its bases.
        read_only: properties without a setter.
        setters: properties with one, and the names that its code uses.
    """

    name: str
    attributes: Mapping[str, Value] = field(default_factory=dict)
    attribute_map: Mapping[str, str] = field(default_factory=dict)
    computed: frozenset[str] = frozenset()
    order: tuple[str, ...] = ()
    read_only: frozenset[str] = frozenset()
    setters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Made:
    """An instance that an installed Transformers made; ``classes`` are those of its parts too."""

    cls: OutsideClass
    attributes: Mapping[str, Value]
    classes: Mapping[str, OutsideClass] = field(default_factory=dict)


class Library(Protocol):
    """An installed Transformers, or none."""

    @property
    def version(self) -> str:
        """Its version; empty where there is none."""
        ...

    def construct(self, name: str, named: Mapping[str, Value]) -> Made:
        """An instance of the class ``name``.

        Raises:
            CannotFollow: it cannot be asked.
            Raised: the constructor raised.
        """
        ...

    def class_of(self, model_type: Value) -> str | None:
        """The name of the class of a model type; None where it does not know the type.

        Raises:
            CannotFollow: it cannot be asked.
        """
        ...

    def architecture_of(self, model_type: Value) -> Value:
        """The architecture for a model type where a checkpoint names none, or None.

        Raises:
            CannotFollow: it cannot be asked.
        """
        ...


class ConfigRun(Calls):
    """Runs configuration code, and knows what Transformers' configurations do.

    Args:
        names: the definitions of the tree.
        interest: attributes whose assignment is noted.
        base: what a bare configuration is.
        library: an installed Transformers.
    """

    def __init__(
        self, names: Names, interest: Iterable[str], base: BaseRule, library: Library
    ) -> None:
        super().__init__(names, interest)
        self._base = base
        self._library = library
        self._popped = frozenset(base.popped)
        self._computed = frozenset(base.computed)
        self._class_attributes: dict[str, Value] = {
            **base.class_defaults,
            **{name: {} for name in base.class_empty},
            **dict.fromkeys(base.class_none),
        }
        #: What is known of classes outside the tree, by their own name.
        self.outside: dict[str, OutsideClass] = {}
        self.base = External(f"transformers.{base.names[-1]}")
        #: What reads a checkpoint's file, where one is being loaded.
        self.config_dict: Callable[..., Value] | None = None

    # --- classes outside the tree

    def is_config_class(self, cls: External) -> bool:
        """Whether a class outside the tree is one of Transformers' configurations."""
        return cls.dotted.startswith("transformers.") and cls.name.endswith("Config")

    def is_base(self, cls: External) -> bool:
        """Whether it is the base of all of them."""
        return cls.name in self._base.names and self.is_config_class(cls)

    def is_outside_instance(self, value: Object, cls: External, where: Place) -> bool:
        """Whether an object is an instance of a class outside the tree."""
        if isinstance(value, Config) and self.is_base(cls):
            return True
        if not self.is_config_class(cls):
            if not isinstance(value, Config):
                raise CannotFollow(f"whether something is a `{cls.dotted}`", where)
            return False
        own = class_of(value)
        known: list[str] = []
        for base in self.names.order(own.ref) if isinstance(own, ClassValue) else (own,):
            if isinstance(base, Ref):
                continue
            name = str(getattr(base, "dotted", base)).rpartition(".")[2]
            known += [name, *(self.outside[name].order if name in self.outside else ())]
        return cls.name in known

    def attribute(self, owner: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        """``owner.name``."""
        if isinstance(owner, External) and name == "from_dict" and self.is_config_class(owner):
            where = self.place(node, frame.module)
            return Native(name, lambda given, **kw: self.from_dict(owner, given, kw, where))
        return super().attribute(owner, name, node, frame)

    def construct_outside(
        self,
        cls: External,
        args: tuple[Value, ...],
        named: Mapping[str, Value],
        where: Place | None,
    ) -> Value:
        """An instance of a configuration class outside the tree."""
        if args:
            raise Raised(TypeError(f"{cls.name}() takes keyword arguments only"), where)
        made = instance(cls, config=True)
        self._start_outside(made, cls, named, where)
        return made

    def _start_outside(
        self, made: Object, cls: External, named: Mapping[str, Value], where: Place | None
    ) -> None:
        """What ``__init__`` of a class outside the tree does to an instance."""
        if self.is_base(cls):
            self.start(made, named, where)
            return
        given = self._library.construct(cls.name, named)
        self.outside.update(given.classes)
        self.outside[cls.name] = given.cls
        for key, value in given.attributes.items():
            attrs_of(made)[key] = value

    def outside_attribute(
        self, dotted: str, cls: Value, name: str, receiver: Value, where: Place | None
    ) -> Value:
        """What a class outside the tree has of that name; MISSING where it has nothing."""
        outside = External(dotted)
        if outside.name in ("object", "ABC", "Protocol", "Generic", "dict"):
            return MISSING
        if not self.is_config_class(outside):
            raise CannotFollow(f"`{name}` of the base `{dotted}`, which is outside", where)
        own = self._of_config(outside, name, receiver, where)
        if own is not MISSING or self.is_base(outside):
            return own
        known = self.outside.get(outside.name)
        if known is None:
            reason = f"whether `{outside.name}` has `{name}` is known to Transformers alone"
            raise CannotFollow(reason, where)
        if name in known.attributes:
            return known.attributes[name]
        if name in known.computed:
            raise CannotFollow(f"`{outside.name}.{name}` is computed by Transformers", where)
        return MISSING

    def _of_config(self, cls: External, name: str, receiver: Value, where: Place | None) -> Value:
        """What every configuration has of that name."""
        if name == "__init__":
            if not isinstance(receiver, Object):
                return Native(name, lambda made, **kw: self._start_outside(made, cls, kw, where))
            return Native(name, lambda **named: self._start_outside(receiver, cls, named, where))
        if isinstance(receiver, Object):
            methods: dict[str, Callable[..., Value]] = {
                "update": lambda given: self._update(receiver, given, where),
                "to_dict": lambda: self._to_dict(receiver, where),
                "get_text_config": lambda decoder=None, encoder=None: self._text_config(
                    receiver, decoder, encoder, where
                ),
            }
            if name.startswith("validate_"):
                return Native(name, lambda: None)  # raises for what is refused elsewhere, or never
            if name in methods:
                return Native(name, methods[name])
        if name == "get_config_dict" and self.config_dict is not None:
            return Native(name, self.config_dict)
        target = class_of(receiver) if isinstance(receiver, Object) else receiver
        if name == "from_pretrained" and self.config_dict is not None:
            read = self.config_dict
            return Native(name, lambda *_, **__: self.from_dict(target, read()[0], {}, where))
        if name == "from_dict":
            return Native(name, lambda given, **kw: self.from_dict(target, given, kw, where))
        if name in self._class_attributes:
            known = self.outside.get(cls.name)
            held = known.attributes if known is not None else {}
            return held.get(name, self._class_attributes[name])
        if name in self._computed:
            raise CannotFollow(f"`{name}` of a configuration is not followed", where)
        return MISSING

    def from_dict(
        self, cls: Value, given: Value, named: Mapping[str, Value], where: Place | None
    ) -> Value:
        """``cls.from_dict(given, **named)``: the dict makes it, attributes it has are replaced."""
        frame = Frame(cls.ref.module if isinstance(cls, ClassValue) else "", {})
        if not isinstance(given, dict):
            raise CannotFollow("a configuration of something that is not a dict", where)
        made = self.call(cls, (), dict(given), _PASS, frame)
        for key, value in named.items():
            if key in attrs_of(made):
                self.set_attribute(made, key, value, where)
        return made

    def item(self, owner: Value, key: Value, node: ast.AST, frame: Frame) -> Value:
        """``owner[key]``, where the owner may be a table of Transformers."""
        look_up = getattr(owner, "look_up", None) if isinstance(owner, External) else None
        return super().item(owner, key, node, frame) if look_up is None else look_up(key)

    # --- instances

    def mapped(self, owner: Object, name: str) -> str:
        """The name under which a configuration keeps an attribute."""
        if not isinstance(owner, Config):
            return name
        name = self._base.aliases.get(name, name)
        cls = class_of(owner)
        for base in self.names.order(cls.ref) if isinstance(cls, ClassValue) else (cls,):
            held: object = None
            if isinstance(base, Ref):
                sketch = self.names.sketch(base.module)
                if sketch is not None and "attribute_map" in sketch.members(base.name):
                    held = self._own(base, "attribute_map", owner)
            elif isinstance(base, Outside | External):
                known = self.outside.get(base.dotted.rpartition(".")[2])
                held = known.attribute_map if known is not None else None
            if isinstance(held, Mapping):
                return str(held.get(name, name))
        return name

    def set_property(self, owner: Object, name: str, value: Value, where: Place | None) -> bool:
        """Set an attribute that the class computes; whether it is one."""
        if isinstance(owner, Config) and self._is_of_base(name):
            if name in self._base.settable:
                return False
            raise CannotFollow(f"`{name}` is set, which the class computes", where)
        cls = class_of(owner)
        for base in self.names.order(cls.ref) if isinstance(cls, ClassValue) else (cls,):
            if isinstance(base, Ref):
                sketch = self.names.sketch(base.module)
                if sketch is not None and name in sketch.members(base.name):
                    return self._set_by_tree(base, owner, name, value, where)
            else:
                known = self.outside.get(str(getattr(base, "dotted", base)).rpartition(".")[2])
                if known is not None and name in known.computed:
                    return self._set_outside(known, owner, name, where)
        return False

    def _is_of_base(self, name: str) -> bool:
        return name in self._computed or (name.startswith("__") and name.endswith("__"))

    def _set_by_tree(
        self, cls: Ref, owner: Object, name: str, value: Value, where: Place | None
    ) -> bool:
        """Set what a class of the tree defines; whether that is a property."""
        held = self.own_property(cls, name)
        if held is None or held.cached:
            return False
        if held.setter is None:
            raise _read_only(owner, name, where)
        self.call_function(Function(held.setter, cls.module, cls), (owner, value), {})
        return True

    def _set_outside(
        self, cls: OutsideClass, owner: Object, name: str, where: Place | None
    ) -> bool:
        """Set what a class of Transformers computes: what its setter touches is not known then."""
        if name in cls.read_only:
            raise _read_only(owner, name, where)
        touched = cls.setters.get(name)
        if touched is None or any(one in cls.computed for one in touched if one != name):
            raise CannotFollow(f"`{name}` is set, which the class computes", where)
        for one in (name, *touched):
            reason = f"`{one}` is computed by Transformers where `{name}` is set"
            attrs_of(owner)[self.mapped(owner, one)] = Unknown(reason, where)
        return True

    def start(self, made: Object, named: Mapping[str, Value], where: Place | None) -> None:
        """``PreTrainedConfig.__init__``: fields, then every other keyword as an attribute."""
        fields: dict[str, Value] = {
            **dict.fromkeys(self._base.none),
            **self._base.defaults,
            **self._own_fields(made),
        }
        self._refuse_what_is_checked(made, named, where)
        for key, default in fields.items():
            attrs_of(made)[key] = named[key] if key in named else copy.deepcopy(default)
        for key, value in named.items():
            if key in self._popped:
                continue
            if key in self._base.aliases and named.get(self._base.aliases[key]) is not None:
                continue
            if key not in fields:
                self.set_attribute(made, key, value, where)

    def _own_fields(self, made: Object) -> dict[str, Value]:
        """Annotated names of the classes of the tree, which make fields of the constructor."""
        cls = class_of(made)
        found: dict[str, Value] = {}
        bases = self.names.order(cls.ref) if isinstance(cls, ClassValue) else ()
        for base in reversed(bases):
            sketch = self.names.sketch(base.module) if isinstance(base, Ref) else None
            if sketch is None or not isinstance(base, Ref):
                continue
            for name, chunk in sketch.members(base.name).items():
                node = sketch.node(chunk) if chunk.kind == "value" else None
                if not isinstance(node, ast.AnnAssign) or name in self._class_attributes:
                    continue
                if "ClassVar" not in ast.unparse(node.annotation):
                    found[name] = self._own(base, name, made)
        return found

    def _refuse_what_is_checked(
        self, made: Object, named: Mapping[str, Value], where: Place | None
    ) -> None:
        """Values that Transformers checks or rewrites are not followed."""
        count = named.get("num_hidden_layers", MISSING)
        if count is MISSING and any(named.get(key) is not None for key in self._base.layer_types):
            count = self._held(made, "num_hidden_layers", where)
        reason = checked(self._base, named, None if count is MISSING else count)
        if reason is not None:
            raise HeldBack(
                f"{reason}: another release of Transformers may treat it otherwise", where
            )
        for key in named:
            if not isinstance(key, str) or key == "self":
                raise CannotFollow(f"a configuration cannot have the key {key!r}", where)

    def _update(self, receiver: Object, given: Value, where: Place | None) -> None:
        if not isinstance(given, dict):
            if isinstance(given, Unknown | Object):
                raise CannotFollow("an update by something that is not a dict", where)
            ops.native(where, lambda: given.items())
            raise CannotFollow("an update by something that is not a dict", where)
        said: list[str] = []
        for key, value in given.items():
            self.set_attribute(receiver, key, value, where)
            if key in self.interest and ops.is_data(value):
                said.append(f"{key} = {value!r}")
        if said and self.calling is not None:
            self.note(*self.calling, ", ".join(said))

    def _to_dict(self, receiver: Object, where: Place | None) -> Value:
        quantized = self._held(receiver, "quantization_config", where)
        if ops.is_data(quantized) and not isinstance(quantized, dict | None):
            said = f"{type(quantized).__name__!r} object has no attribute 'to_dict'"
            raise Raised(AttributeError(said), where)
        made = {
            key: self._to_dict(value, where) if isinstance(value, Config) else copy.deepcopy(value)
            for key, value in attrs_of(receiver).items()
            if not key.startswith("_")
        }
        cls = class_of(receiver)
        found = (
            self.class_attribute(cls, "model_type", cls, None)
            if isinstance(cls, ClassValue)
            else self.outside_attribute(cls.dotted, cls, "model_type", cls, None)
        )
        made["model_type"] = found
        return made

    def _text_config(
        self, receiver: Object, decoder: Value, encoder: Value, where: Place | None
    ) -> Value:
        """The part of a composite configuration that is about text, else the whole."""
        both = decoder == encoder
        names = ["text_encoder"] if both or not decoder else []
        names += DECODERS if both or decoder else []
        held = [(name, self._held(receiver, name, where)) for name in names]
        valid = [
            (name, value) for name, value in held if value is not MISSING and value is not None
        ]
        if len(valid) > 1:
            said = [name for name, _ in valid]
            raise Raised(ValueError(f"Multiple valid text configs were found: {said}"), where)
        if valid:
            return valid[0][1]
        if not both and self._held(receiver, "is_encoder_decoder", where):
            raise CannotFollow("the text part of an encoder and decoder", where)
        return receiver

    def _held(self, owner: Object, name: str, where: Place | None) -> Value:
        before, self.asking = self.asking, True
        noted = dict(self.absent)
        try:
            return self.object_attribute(owner, name, where)
        except Raised as raised:
            if isinstance(raised.error, AttributeError):
                return MISSING
            raise
        finally:
            self.asking, self.absent = before, noted


_PASS = ast.Pass()


def _read_only(owner: Object, name: str, where: Place | None) -> Raised:
    said = f"property {name!r} of {type(owner).__name__!r} object has no setter"
    return Raised(AttributeError(said), where)
