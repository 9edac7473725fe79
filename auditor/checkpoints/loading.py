"""A checkpoint's configuration as the engine's own loading makes it.

The tree's function is run as it stands. What it asks of Transformers is answered here: which class
a model type has, by the table that the tree adds to, and what that class makes of the file.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

from auditor.checkpoints import operations as ops
from auditor.checkpoints.configs import ConfigRun, Library
from auditor.checkpoints.conventions import checkpoint_rule
from auditor.checkpoints.engine import guarded, override_function
from auditor.checkpoints.values import (
    CannotFollow,
    ClassValue,
    Config,
    External,
    FromLibrary,
    Function,
    Native,
    Raised,
    Unknown,
    UnknownModelType,
    Value,
    attrs_of,
    class_of,
    library_error,
)
from auditor.contracts.names import Ref


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded configuration: before and after it is rewritten."""

    before: Value
    after: Value


class Loader:
    """Loads one configuration.

    Args:
        run: a run that nothing else uses.
        library: an installed Transformers, or none.
        name: what the engine calls the checkpoint.
        given: the checkpoint's file.
    """

    def __init__(
        self, run: ConfigRun, library: Library, name: str, given: Mapping[str, Value]
    ) -> None:
        self._run = run
        self._library = library
        self._name = name
        self._given = given
        self._registered: dict[Value, Value] = {}
        self._before: Value = None
        #: The model type that the tree's code goes by, once it has asked for its class.
        self.model_type: Value = None
        self._install()

    def _install(self) -> None:
        """Have what the tree's code asks of Transformers answered here."""
        rule, run = checkpoint_rule(), self._run
        auto = "transformers.AutoConfig"
        found: dict[str, Value] = {
            auto: External(auto),
            f"{auto}.register": Native("register", self._register),
            f"{auto}.from_pretrained": Native("from_pretrained", self._from_pretrained),
            f"{auto}.for_model": Native("for_model", self._for_model),
            "transformers.CONFIG_MAPPING": Mapped(self),
        }
        for module in ("transformers", "transformers.configuration_utils"):
            for name in rule.base.names:
                found[f"{module}.{name}"] = run.base
                found[f"{module}.{name}.get_config_dict"] = Native("get_config_dict", self._dict)
        for name in rule.tree.files:
            found[name] = Native(name, lambda *_, **__: False)
        for name in rule.tree.later:
            found[name] = Native(name, lambda *_, **__: None)
        names = "transformers.models.auto.modeling_auto.MODEL_MAPPING_NAMES"
        found[names] = Architectures(self._library)
        run.stand_ins.update(found)
        run.config_dict = self._dict

    def load(self) -> Loaded:
        """The configuration, rewritten for drafting.

        Raises:
            CannotFollow: it depends on something that nobody can say here.
            Raised: loading or rewriting raised.
        """
        rule, run = checkpoint_rule().tree, self._run
        module, _, name = rule.load.rpartition(".")
        function = run.named(Ref(module, name))
        if not isinstance(function, Function):
            raise CannotFollow(f"this release has no {rule.load}")
        rewriting = override_function(run)
        rewrite = Native(rewriting.name, lambda config: self._rewrite(rewriting, config))
        run.lenient = frozenset(rule.lenient)
        args = {"model": self._name, **rule.arguments, rule.rewrite: rewrite}
        made = guarded(lambda: run.call_function(function, (), args))
        if isinstance(made, Unknown):
            raise CannotFollow(made.reason, made.where)
        return Loaded(self._before, made)

    def _rewrite(self, function: Function, config: Value) -> Value:
        if isinstance(config, Unknown):
            raise CannotFollow(config.reason, config.where)
        run = self._run
        if attrs_of(config).get("architectures") != [""]:
            self._before = copy.deepcopy(config)
            return run.call_function(function, (config,), {})
        # Loading asks first what becomes of the model type alone: no step of the answer.
        taken, absent = list(run.taken), dict(run.absent)
        try:
            return run.call_function(function, (config,), {})
        finally:
            run.taken, run.absent = taken, absent

    # --- what the tree asks of Transformers

    def _dict(self, *_: Value, **__: Value) -> Value:
        return copy.deepcopy(dict(self._given)), {}

    def _register(self, model_type: Value, cls: Value, **_: Value) -> None:
        self._registered[model_type] = cls

    def _from_pretrained(self, *_: Value, **named: Value) -> Value:
        model_type = self._given.get("model_type")
        cls = self.class_of(model_type)
        return self._run.from_dict(cls, copy.deepcopy(dict(self._given)), {}, None)

    def _for_model(self, model_type: Value, **named: Value) -> Value:
        return self._run.from_dict(self.class_of(model_type), named, {}, None)

    def class_of(self, model_type: Value) -> Value:
        """The class for a model type: one that the tree registers, else Transformers' own.

        Raises:
            CannotFollow: nobody can say here.
            Raised: nobody knows the model type.
        """
        self.model_type = model_type
        ops.native(None, hash, model_type)
        if isinstance(model_type, str) and model_type in self._registered:
            return self._registered[model_type]
        name = self._library.class_of(model_type)
        if name is not None:
            return External(f"transformers.{name}")
        if isinstance(self._given.get("auto_map"), dict):
            said = f"model type {model_type!r} is known to the checkpoint's own code alone"
            raise CannotFollow(f"{said} (auto_map), which is never run")
        if "model_type" not in self._given and model_type is None:
            said = f"Unrecognized model in {self._name}. Should have a `model_type` key"
            raise Raised(library_error("ValueError", f"{said} in its config.json."))
        said = (
            f"The checkpoint you are trying to load has model type `{model_type}` but Transformers"
        )
        mark = FromLibrary if model_type is None else UnknownModelType
        said = f"{said} does not recognize this architecture."
        raise Raised(library_error("ValueError", said, mark))

    def mapped(self, model_type: Value) -> Value:
        """The same, where it is looked up in a table: a missing key is another exception.

        Raises:
            CannotFollow: nobody can say here.
            Raised: nobody knows the model type.
        """
        try:
            return self.class_of(model_type)
        except Raised as raised:
            if not isinstance(raised.error, UnknownModelType):
                raise
            raise Raised(library_error("KeyError", repr(model_type), UnknownModelType)) from raised


class Mapped(External):
    """``CONFIG_MAPPING``: the class of a model type."""

    __slots__ = ("_loader",)

    def __init__(self, loader: Loader) -> None:
        super().__init__("transformers.CONFIG_MAPPING")
        self._loader = loader

    def look_up(self, key: Value) -> Value:
        """``CONFIG_MAPPING[key]``."""
        return self._loader.mapped(key)


class Architectures(External):
    """``MODEL_MAPPING_NAMES``: the architecture of a model type."""

    __slots__ = ("_library",)

    def __init__(self, library: Library) -> None:
        super().__init__("transformers.MODEL_MAPPING_NAMES")
        self._library = library

    def look_up(self, key: Value) -> Value:
        """``MODEL_MAPPING_NAMES[key]``."""
        found = self._library.architecture_of(key)
        if found is None:
            raise Raised(KeyError(key))
        return found

    def __contains__(self, key: object) -> bool:  # type: ignore[override]
        return self._library.architecture_of(key) is not None


def class_name(config: Value) -> str | None:
    """The name of a configuration's class."""
    if not isinstance(config, Config):
        return None
    cls = class_of(config)
    return str(cls.name) if isinstance(cls, ClassValue | External) else None
