"""``sys.modules`` as a mapping: modules looked up, put in and taken out by name."""

from __future__ import annotations

from auditor.evaluation.frame import Frame, guard_pair, join
from auditor.evaluation.tree_calls import TreeCalls
from auditor.values import (
    UNBOUND,
    Doubt,
    Place,
    PythonError,
    Undecided,
    Value,
    builtin_error,
)

#: Methods of ``sys.modules`` that are followed.
TABLE_METHODS = frozenset(("sys.modules.get", "sys.modules.pop", "sys.modules.setdefault"))


class LoadedModules(TreeCalls):
    """Gives methods of ``sys.modules`` their meaning."""

    def ask_table(
        self, method: str, name: str, rest: tuple[Value, ...], frame: Frame, place: Place
    ) -> Value:
        """``get``, ``pop`` and ``setdefault``, as of a dict.

        Raises:
            PythonError: ``KeyError``, where nothing is there to take out.
        """
        default = rest[0] if rest else UNBOUND
        kind = method.rpartition(".")[2]
        if kind == "pop":
            return self.take_out(name, default, frame, place)
        value = self._loaded_or(name, None if default is UNBOUND else default, place)
        if kind == "setdefault":
            self.put_in(name, value, place)
        return value

    def take_out(self, name: str, default: Value, frame: Frame, place: Place) -> Value:
        """Take a module out, so that the next import runs it again; its package keeps it."""
        there = self.is_loaded(name)
        missing = builtin_error("KeyError", repr(name), place)
        if there is False:
            if default is UNBOUND:
                raise PythonError(missing)
            return default
        value = self.entry(name)
        if default is not UNBOUND:
            value = self._loaded_or(name, default, place)
        elif isinstance(there, Undecided):
            frame.doubt(Doubt(missing, there))
        self.put_in(name, UNBOUND, place)
        return value

    def _loaded_or(self, name: str, default: Value, place: Place) -> Value:
        """``sys.modules.get(name, default)``."""
        there = self.is_loaded(name)
        if isinstance(there, Undecided):
            then, orelse = guard_pair(there.where or place, there.text, None, there.key)
            return join(((then, self.entry(name)), (orelse, default)))
        return self.loaded(name) if there else default
