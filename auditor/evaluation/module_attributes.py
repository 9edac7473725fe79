"""Attributes of modules (PEP 562), and the values behind names whose import was put off."""

from __future__ import annotations

from types import ModuleType

from auditor.evaluation.frame import Frame, join
from auditor.evaluation.import_system import ImportSystem
from auditor.values import (
    UNBOUND,
    Deferred,
    Doubt,
    Either,
    Function,
    ModuleValue,
    Opaque,
    Origin,
    Pending,
    Place,
    PlatformObject,
    PythonError,
    Trace,
    Undecided,
    Value,
)

#: What a module has without binding it: from its type, and from the import system. Any other
#: name is served by ``__getattr__``, those with underscores around them too (PEP 562).
_OF_EVERY_MODULE = frozenset(dir(ModuleType)) | {
    "__builtins__", "__cached__", "__file__", "__loader__", "__name__", "__package__", "__spec__",
}  # fmt: skip


class ModuleAttributes(ImportSystem):
    """Looks attributes of modules up."""

    #: Deferred names that are being looked up.
    _looking_up: set[Deferred]

    def is_platform(self, module: ModuleValue, name: str) -> bool:
        """Whether ``module.name`` is ``current_platform``."""
        return name == self.platform_name and module.name == self.platform_module

    def module_attribute(self, module: ModuleValue, name: str, place: Place, frame: Frame) -> Value:
        """``module.name``: the namespace, then the module's ``__getattr__`` (PEP 562)."""
        if self.is_platform(module, name):
            return PlatformObject()
        value = module.names.get(name, UNBOUND)
        if value is UNBOUND:
            return self._beyond_names(module, name, place, frame)
        if isinstance(value, Either) and any(v is UNBOUND for _, v in self.alive(value)):
            return self._perhaps_beyond(value, module, name, place, frame)
        return value

    def _perhaps_beyond(
        self, value: Either, module: ModuleValue, name: str, place: Place, frame: Frame
    ) -> Value:
        """A name that some branches leave to ``__getattr__``, or unbound."""
        options = [option for option in self.alive(value) if option[1] is not UNBOUND]
        guard = next(guard for guard, option in self.alive(value) if option is UNBOUND)
        try:
            options.append((guard, self._beyond_names(module, name, place, frame)))
        except PythonError as raised:
            why = Undecided("a branch does not bind it", guard.where, str(guard))
            frame.doubt(Doubt(raised.error, why))
            if not options:
                raise
        return join(options)

    def _beyond_names(self, module: ModuleValue, name: str, place: Place, frame: Frame) -> Value:
        if name == "__name__":
            return module.name
        if name in _OF_EVERY_MODULE:
            return Opaque(f"{name} of a module", place)
        if name == "__path__" and module.is_package:
            return Opaque("__path__ of a package", place)
        hook = module.names.get("__getattr__", UNBOUND)
        if isinstance(hook, Function):
            return self._served(hook, module, name, place, frame)
        if hook is not UNBOUND and not isinstance(hook, Function):
            return Opaque(f"served by the __getattr__ of {module.name}", place)
        if not self.eager and f"{module.name}.{name}" in self.program.modules:
            return self.import_module(f"{module.name}.{name}", frame, place)
        if module.wild is not None:
            return module.wild
        raise PythonError(self._no_attribute(module, name, place))

    def _served(
        self, hook: Function, module: ModuleValue, name: str, place: Place, frame: Frame
    ) -> Value:
        trace: list[Trace] = [
            Trace("getattr", Place(module.path, hook.facts.line), f"asked for {name}")
        ]
        text = f"{module.name}.__getattr__({name!r})"
        value = self.invoke(hook, (name,), (), frame, place, text, trace)
        module.origins[name] = Origin(hook.facts, hook.facts.line, (), tuple(trace))
        if frame.trace is not None:
            frame.trace.extend(trace)
        return value

    def force(self, value: Value, frame: Frame) -> Value:
        """The value behind a pending call or a deferred name; any other value as it is."""
        kind = type(value)
        if kind is Pending:
            return self.result(value, frame)
        if kind is Deferred:
            if value in self._looking_up:
                return Opaque("an import that leads back to itself", value.where)
            self._looking_up.add(value)
            try:
                return self._behind(value, frame)
            finally:
                self._looking_up.discard(value)
        if kind is Opaque and value.usual is not UNBOUND:
            self.environment_asked += 1
            return value.usual if self.bare_environment else value
        if kind is dict or kind is list or kind is set:
            return self.containers.lost(value) or value
        return value

    def _behind(self, name: Deferred, frame: Frame) -> Value:
        module = self.import_module(name.module, frame, name.where)
        if name.attr is None:
            return module
        return self.force(self._from(module, name.module, name.attr, frame, name.where), frame)
