"""``sys.modules``, ``os.environ`` and ``globals()``: their items read, stored and deleted."""

from __future__ import annotations

from operator import delitem, setitem

from auditor.evaluation.frame import Frame, is_own
from auditor.evaluation.import_statements import ImportStatements
from auditor.values import (
    UNBOUND,
    ClassValue,
    Doubt,
    Either,
    Foreign,
    Instance,
    ModuleValue,
    Opaque,
    Place,
    PythonError,
    Undecided,
    Value,
    builtin_error,
)


class ProcessMappings(ImportStatements):
    """Gives the mappings that hold the state of a process their meaning."""

    def foreign_contains(self, item: Value, container: Value) -> bool | Undecided:
        """``item in sys.modules`` and ``name in os.environ``."""
        if container == Foreign("sys.modules") and isinstance(item, str):
            return self.is_loaded(item)
        if (
            container == Foreign("os.environ")
            and isinstance(item, str)
            and item in self.platform.environment
        ):
            return True
        if container == Foreign("os.environ"):
            self.environment_asked += 1
            if self.bare_environment:
                return False
        return super().foreign_contains(item, container)

    def item(self, owner: Value, index: Value, frame: Frame, line: int) -> Value:
        """``owner[index]``; ``sys.modules`` and ``os.environ`` have their meaning."""
        place = frame.place(line)
        if owner == Foreign("sys.modules"):
            return self._loaded_module(self.force(index, frame), frame, place)
        if owner == Foreign("os.environ"):
            key = self.force(index, frame)
            unset = Opaque("a variable that must be set", place)
            if not isinstance(key, str):
                return unset
            if key not in self.platform.environment:
                error = builtin_error("KeyError", repr(key), place)
                frame.doubt(Doubt(error, Undecided(f"the variable {key} is not set here", place)))
            return self._environment(key, unset, place, f"os.environ[{key!r}]")
        return super().item(owner, index, frame, line)

    def _loaded_module(self, key: Value, frame: Frame, place: Place) -> Value:
        """``sys.modules[key]``."""
        if not isinstance(key, str):
            return Opaque("a module", place)
        there = self.is_loaded(key)
        missing = builtin_error("KeyError", repr(key), place)
        if there is False:
            raise PythonError(missing)
        if isinstance(there, Undecided):
            frame.doubt(Doubt(missing, there))
        return self.entry(key)

    def store_item(self, owner: Value, index: Value, value: Value, frame: Frame, line: int) -> None:
        """``owner[index] = value``; a store into ``sys.modules`` replaces a module."""
        owner, key = self.force(owner, frame), self.force(index, frame)
        if isinstance(owner, Either):
            self._of_each(owner, lambda one: self.store_item(one, key, value, frame, line), frame)
        elif owner == Foreign("sys.modules") and isinstance(key, str):
            self.put_in(key, value, frame.place(line))
        elif id(owner) in self.namespaces and isinstance(key, str):
            module = self.namespaces[id(owner)]
            self._set_in_module(module, key, value, frame, frame.place(line))
        elif id(owner) in self.namespaces:
            module = self.namespaces[id(owner)]
            module.wild = Opaque("globals() by an unknown name", frame.place(line))
        elif isinstance(owner, dict | list):
            self.containers.changes(owner, self.open_guards, self.steps)
            if not self.hashed(key, frame, line):
                reason, own = "an item by an unknown index", is_own(key)
                self.forget(owner, reason, frame, line, own=own)
            else:
                self._python(owner.__setitem__, key, value, frame, line)
        else:
            if isinstance(owner, Instance | ClassValue):
                self.special(owner, "__setitem__", (key, value), frame, line)
            self.refuse(lambda v: setitem(v, 0, None), owner, ("__setitem__",), frame, line)

    def delete_item(self, owner: Value, index: Value, frame: Frame, line: int) -> None:
        """``del owner[index]``."""
        if isinstance(owner, Either):
            self._of_each(owner, lambda one: self.delete_item(one, index, frame, line), frame)
        elif owner == Foreign("sys.modules") and isinstance(index, str):
            self.take_out(index, UNBOUND, frame, frame.place(line))
        elif id(owner) in self.namespaces and isinstance(index, str):
            self._python(dict.__delitem__, self.namespaces[id(owner)].names, index, frame, line)
        elif isinstance(owner, dict | list):
            self.containers.changes(owner, self.open_guards, self.steps)
            if not self.hashed(index, frame, line):
                reason, own = "an item by an unknown index is deleted", is_own(index)
                self.forget(owner, reason, frame, line, own=own)
            else:
                self._python(delitem, owner, index, frame, line)
        else:
            if isinstance(owner, Instance | ClassValue):
                self.special(owner, "__delitem__", (index,), frame, line)
            self.refuse(lambda v: delitem(v, 0), owner, ("__delitem__",), frame, line)

    def put_in(self, name: str, value: Value, place: Place) -> None:
        """Set an entry of ``sys.modules``; on a branch of an open condition it is not known."""
        if value is self.loaded(name):
            return
        if place.path:
            self.program.asked_by_text(place.path, name)
        if self.open_guards:
            value = Opaque(f"a branch changes sys.modules[{name!r}]", place)
            parent, _, child = name.rpartition(".")
            package = self.loaded(parent)
            if isinstance(package, ModuleValue):
                package.names.setdefault(child, value)
        if value is UNBOUND:
            self.modules.pop(name, None)
        else:
            self.modules[name] = value
        if isinstance(value, ModuleValue):
            self.namespaces[id(value.names)] = value
