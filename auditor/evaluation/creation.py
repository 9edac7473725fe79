"""What making a class runs besides its body: ``__init_subclass__``, metaclasses, decorators."""

from __future__ import annotations

from msgspec.structs import replace

from auditor import facts as f
from auditor.classes import derives, linearise
from auditor.evaluation.frame import Frame, is_plain
from auditor.evaluation.machine import Machine
from auditor.evaluation.standins import base_error
from auditor.values import (
    Builtin,
    ClassValue,
    Function,
    Instance,
    ModuleValue,
    Opaque,
    PythonError,
    Value,
    builtin_error,
)

#: Methods of a metaclass that can give a class attributes that its body does not have.
_MAKING = ("__new__", "__prepare__", "__call__")
_SERVING = ("__getattr__", "__getattribute__")

Bases = tuple[Value, ...]
Keywords = tuple[tuple[str, Value], ...]


def given_bases(run: Machine, name: str, bases: Bases, frame: Frame, line: int) -> Bases:
    """The bases of a class as its metaclass is given them (PEP 560).

    Python asks each that is no class for ``__mro_entries__``, and puts what that returns in its
    place. A module is asked too: where it does not bind the name, its ``__getattr__`` is.

    Raises:
        PythonError: what the question raises, or ``TypeError`` where the answer is no tuple.
    """
    given: list[Value] = []
    for base in bases:
        if isinstance(base, ModuleValue):
            given += _entries(run, name, base, bases, frame, line)
        else:
            given.append(base)
    return tuple(given)


def _entries(
    run: Machine, name: str, module: ModuleValue, bases: Bases, frame: Frame, line: int
) -> Bases:
    place, mark = frame.place(line), frame.doubts.mark()
    try:
        asked = run.force(run.module_attribute(module, "__mro_entries__", place, frame), frame)
    except PythonError as raised:
        if "AttributeError" in raised.error.bases:
            return (module,)
        raise
    for doubt in frame.doubts.since(mark):
        if "AttributeError" in doubt.error.bases:  # then the module itself is the base
            frame.doubts.drop([doubt])
            refused = builtin_error("TypeError", base_error(name, (module,)), place)
            frame.doubt(replace(doubt, error=refused))
    if isinstance(asked, Function):
        text = f"{module.name}.__mro_entries__(…)"
        made = run.force(run.invoke(asked, (bases,), (), frame, place, text), frame)
        if isinstance(made, tuple):
            return made
        if is_plain(made) or isinstance(made, ModuleValue):
            said = "__mro_entries__ must return a tuple"
            raise PythonError(builtin_error("TypeError", said, place))
    elif is_plain(asked) or isinstance(asked, ModuleValue):
        kind = "module" if isinstance(asked, ModuleValue) else type(asked).__name__
        said = f"{kind!r} object is not callable"
        raise PythonError(builtin_error("TypeError", said, place))
    return (Opaque(f"what the __mro_entries__ of {module.name} gives", place),)


def metaclass_of(cls: ClassValue, keywords: Keywords) -> Value:
    """The metaclass that a class is made with; None for ``type``.

    It is the one of its own and those of its bases that derives from all others.
    """
    own: Value = None
    if keywords:
        own = next((value for name, value in keywords if name == "metaclass"), None)
    for base in cls.bases:
        meta = base.metaclass if type(base) is ClassValue else None
        if meta is not None and (not isinstance(own, ClassValue) or derives(meta, own) is True):
            own = meta
    return own


def conflicts(cls: ClassValue) -> bool:
    """Whether the metaclass of a class surely does not derive from that of a base."""
    metas = [base.metaclass for base in cls.bases if isinstance(base, ClassValue)]
    known = [meta for meta in (cls.metaclass, *metas) if meta is not None]
    plain = all(isinstance(meta, ClassValue) and _is_plain(meta) for meta in known)
    return plain and any(derives(cls.metaclass, meta) is False for meta in known)


def is_hooked(run: Machine, cls: ClassValue) -> bool:
    """Whether a class or a base of it defines ``__init_subclass__``."""
    for base in cls.bases:
        if isinstance(base, ClassValue) and base.hooked:
            return True
    return "__init_subclass__" in run.program.texts.methods.of(cls.facts)


def run_hooks(run: Machine, cls: ClassValue, keywords: Keywords, frame: Frame, line: int) -> None:
    """Run what ``type`` runs once a class is there.

    Raises:
        PythonError: what a hook raises.
    """
    place = frame.place(line)
    words = tuple((name, value) for name, value in keywords if name != "metaclass")
    for base in linearise(cls)[1:]:
        hook = _own_method(run, base, "__init_subclass__")
        if hook is not None:
            run.invoke(hook, (cls,), words, frame, place, f"class {cls.qualname}")
            break
    else:
        if words and cls.metaclass is None and _is_plain(cls):
            message = f"{cls.facts.name}.__init_subclass__() takes no keyword arguments"
            raise PythonError(builtin_error("TypeError", message, place))
    if isinstance(cls.metaclass, ClassValue):
        made = Instance(cls.metaclass, place)
        if _can_add_names(run, cls.metaclass):
            why = f"{cls.metaclass.qualname} may add it"
            cls.wild = cls.wild or Opaque(why, place, f"metaclass={cls.metaclass.qualname}")
        for meta in linearise(cls.metaclass):
            maker = _own_method(run, meta, "__init__")
            if maker is not None:
                given = (cls, cls.facts.name, tuple(cls.bases), Opaque("a namespace", place))
                run.invoke(maker, given, words, frame, place, made.cls.qualname)
                break


def name_descriptors(run: Machine, cls: ClassValue, frame: Frame, line: int) -> None:
    """Tell the objects in a class body their names, as ``type`` does (``__set_name__``).

    Raises:
        PythonError: what that raises; some releases of Python wrap it in another exception.
    """
    names = cls.namespace or {}
    for name, value in [item for item in names.items() if type(item[1]) is Instance]:
        hook = run.method(value.cls, "__set_name__")
        if hook is None:
            continue
        place = frame.place(line)
        try:
            run.invoke(hook, (value, cls, name), (), frame, place, f"class {cls.qualname}")
        except PythonError as raised:
            bases = ("?", "Exception", "BaseException")
            error = replace(raised.error, type="Exception", message="…", bases=bases, cls=None)
            raise PythonError(error) from raised


def _is_plain(cls: ClassValue) -> bool:
    """Whether all bases of a class are known, and made by ``type``."""
    return all(isinstance(one, Builtin | ClassValue) for one in linearise(cls)) and all(
        one.metaclass is None for one in linearise(cls) if isinstance(one, ClassValue)
    )


def _own_method(run: Machine, cls: Value, name: str) -> Function | None:
    if not isinstance(cls, ClassValue):
        return None
    found = run.program.texts.methods.of(cls.facts).get(name, ())
    decorators = found[0].decorators if found else ()
    if name == "__init_subclass__" and decorators == (f.Name("classmethod"),):
        decorators = ()
    if len(found) != 1:
        return None
    return Function(cls.module, found[0], decorators, cls.scopes, prefix=f"{cls.qualname}.")


def _can_add_names(run: Machine, metaclass: ClassValue) -> bool:
    """Whether the text of a metaclass can give classes more than their bodies bind."""
    for member in linearise(metaclass):
        if not isinstance(member, ClassValue):
            continue
        if any(_own_method(run, member, name) is not None for name in _SERVING):
            return True
        for name in _MAKING:
            method = _own_method(run, member, name)
            if method is not None and _changes(run, method):
                return True
    return False


def _changes(run: Machine, method: Function) -> bool:
    facts = run.function_facts(method)
    if not isinstance(facts, f.FunctionFacts):
        return True
    text = run.program.texts.changes.of(facts)
    return bool(text.heads or text.any_name or text.makes_dicts)
