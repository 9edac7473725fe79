"""Modules outside the tree: whether they exist, and what they hold.

One exists exactly where the platform's facts say so.
"""

from __future__ import annotations

import builtins

from packaging.utils import canonicalize_name

from auditor.evaluation.frame import Frame
from auditor.evaluation.process_mappings import ProcessMappings
from auditor.platforms import Existence
from auditor.releases import release
from auditor.values import (
    UNBOUND,
    Doubt,
    Error,
    Foreign,
    Opaque,
    Place,
    PythonError,
    Undecided,
    Value,
    builtin_error,
)


class ForeignModules(ProcessMappings):
    """Imports modules outside the tree, and looks their attributes up."""

    #: Values of dotted names that were looked up so far.
    _foreign: dict[str, Value]

    def comes_with_tree(self, name: str) -> bool:
        """Whether a dotted name belongs to the audited package, a build's extensions included."""
        return name.partition(".")[0] in self.conventions.roots

    def exists_outside(self, name: str) -> bool:
        """Whether a module outside the tree surely exists."""
        if name.partition(".")[0] in self.conventions.roots:
            return False
        return self._existence(name).exists is True

    def _existence(self, name: str) -> Existence:
        """Whether a module outside the tree exists, by the facts and by the branch followed."""
        existence = self.platform.existence(name)
        if isinstance(existence.exists, Undecided):
            known = self.settled(existence.exists.key)
            if known is not None:
                return Existence(known, existence.fact)
        return existence

    def _import_foreign(self, name: str, frame: Frame, place: Place) -> Value:
        existence = self._existence(name)
        message = f"No module named {self._first_missing(name)!r}"
        if existence.exists is False:
            raise PythonError(self._not_found(message, name, place, existence.fact, frame.guards))
        failure = self.platform.failure(name)
        if failure is not None:
            raise PythonError(self._failing(*failure, place, frame))
        value = Foreign(name)
        if isinstance(existence.exists, Undecided):
            why = Undecided(existence.exists.reason, place, f"import {name}", existence.exists.key)
            self.open_condition(why, frame)
            frame.doubt(Doubt(self._not_found(message, name, place, existence.fact), why))
        elif not self.open_guards:
            # On others than the branch that is followed it is not loaded, or does not even exist.
            self.modules[name] = value
        return value

    @staticmethod
    def _failing(kind: str, message: str, module: str, place: Place, frame: Frame) -> Error:
        """What importing a module outside the tree raises; bases of a class of its own are open."""
        fact = f"importing {module} raises that"
        if isinstance(getattr(builtins, kind, None), type):
            return builtin_error(kind, message, place, fact=fact, guards=frame.guards)
        bases = ("?", "Exception", "BaseException")
        return Error(kind, message, bases, (place,), fact, guards=(frame.guards,))

    def _first_missing(self, name: str) -> str:
        """The module that the import of ``name`` misses first: parents are imported before it."""
        parts = name.split(".")
        if parts[0] in self.conventions.roots:
            return name
        prefixes = (".".join(parts[:end]) for end in range(1, len(parts)))
        return next((one for one in prefixes if self._existence(one).exists is not True), name)

    def installed_release(self, name: str, place: Place) -> Value:
        """The version of a distribution, up to what the tree requires of it."""
        specifier = self.platform.versions.get(canonicalize_name(name))
        if specifier is None:
            return Opaque(f"the version of {name} is not known", place)
        return release(name, specifier)

    def foreign_attribute(self, name: str) -> Value:
        """The value of a dotted name outside the tree; the same all through a run."""
        value = self._foreign.get(name, UNBOUND)
        if value is UNBOUND:
            value = self._foreign[name] = self._foreign_value(name)
        return value

    def _foreign_value(self, name: str) -> Value:
        if name in self.conventions.constants:
            return self.conventions.constants[name]
        if name in self.platform.constants:
            return self.platform.constants[name]
        if name == "sys.version_info":
            return self.conventions.python
        if name in self.platform.assumed:
            return self.platform.assumed[name]
        root, _, rest = name.partition(".")
        if rest == "__version__" and root in self.platform.versions:
            return release(root, self.platform.versions[root])
        return Foreign(name)
