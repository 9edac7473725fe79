"""Writes mini packages at random, in the spellings that vLLM's modules use.

An :class:`Author` writes one module, and knows which names it has bound so far and of which kind,
so that most of what it reads exists; now and then it reads any name, which may not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from differential.trees import ATTRIBUTES, FLAG, LIBRARY, ROOT, VARIABLE

_Item = TypeVar("_Item")
Lines = list[str]

CLASSES = ("Foo", "Bar", "Base", "Mixin")
CONSTANTS = ("x", "y", "flag", "b")
FUNCTIONS = ("probe", "supported")
#: Names served by a module's ``__getattr__``, or looked for on modules.
LAZY = ("Foo", "Lazy", "flag", "b")
LITERALS = ("0", "1", "2", "-1", "True", "False", "None", '""', '"cuda"', '"cu"', "()", "3.5")
ERRORS = ("ImportError", "ModuleNotFoundError", "AttributeError", "NotImplementedError",
          "ValueError", "KeyError")  # fmt: skip
CAUGHT = ("ImportError", "(ImportError, AttributeError)", "ModuleNotFoundError", "Exception",
          "AttributeError", "NameError", "(NameError, TypeError)")  # fmt: skip


class Choices:
    """Decisions read off a string of bytes; the first item, and no, where it is zero or over.

    One string is drawn at once, and made smaller at once: hundreds of single draws an example
    would take longer than importing it.
    """

    def __init__(self, data: bytes) -> None:
        self._bytes = iter(data)

    def pick(self, items: Sequence[_Item]) -> _Item:
        """One of a few items."""
        return items[next(self._bytes, 0) % len(items)] if len(items) > 1 else items[0]

    def chance(self, percent: int) -> bool:
        """Yes in so many of a hundred cases."""
        return next(self._bytes, 0) * 100 >= (100 - percent) * 256

    def order(self, items: Sequence[_Item]) -> list[_Item]:
        """The items in some order."""
        left, result = list(items), []
        while left:
            result.append(self.pick(left))
            left.remove(result[-1])
        return result


@dataclass
class World:
    """All modules of a package, and what those written so far bind."""

    choices: Choices
    packages: dict[str, bool]
    open: tuple[str, ...]
    exports: dict[str, dict[str, str]] = field(default_factory=dict)


class Author:
    """Writes one module."""

    def __init__(self, world: World, module: str) -> None:
        self.world = world
        self.module = module
        self.pick, self.chance = world.choices.pick, world.choices.chance
        self.bound: dict[str, str] = {}
        self.needs: dict[str, None] = {}
        self.in_class = False
        self.spelled_platform = "current_platform"

    def text(self, statements: int) -> str:
        """The source of the module."""
        body = [line for _ in range(statements) for line in self.statement(2)]
        if self.chance(25):
            body += self._module_getattr()
        self.world.exports[self.module] = dict(self.bound)
        return "\n".join([*self.needs, *body]) + "\n"

    # --- what can be read

    def named(self, kind: str, pool: Sequence[str]) -> str:
        """A name that is bound to a thing of a kind, most of the time."""
        known = [name for name, bound in self.bound.items() if bound == kind]
        if known and not self.chance(2):
            return self.pick(known)
        return self.pick(pool) if self.chance(4) else ""

    def any_module(self) -> str:
        """A module of the package: one that is written already, most of the time."""
        written = list(self.world.exports)
        if written and not self.chance(10):
            return self.pick(written)
        return self.pick(list(self.world.packages))

    def name_of(self, module: str) -> tuple[str, str]:
        """A name that ``module`` probably binds, and its kind."""
        exports = list(self.world.exports.get(module, {}).items())
        if exports and not self.chance(4):
            return self.pick(exports)
        name = self.pick((*CLASSES, *CONSTANTS, *FUNCTIONS, "Lazy"))
        kinds = {**dict.fromkeys(CLASSES, "class"), **dict.fromkeys(FUNCTIONS, "function")}
        return name, kinds.get(name, "constant")

    def uses(self, line: str) -> None:
        self.needs[line] = None

    def bind(self, name: str, kind: str) -> None:
        if not self.in_class:
            self.bound[name] = kind

    # --- expressions

    def condition(self, depth: int = 2) -> str:
        """An expression that is asked for its truth."""
        writers = [self._predicate, self._predicate, self._device, self._comparison, self._literal,
                   self._type_checking, self._read, self._module_probe, self._spec,
                   self._loaded, self._call, self._membership]  # fmt: skip
        if self.world.open:
            writers += [self._open, self._open, self._open]
        if depth and self.chance(45):
            return self._compound(depth)
        return self.pick(writers)()

    def _compound(self, depth: int) -> str:
        form = self.pick(("not {0}", "{0} and {1}", "{0} or {1}", "({0}) == ({1})",
                          "(w := {0})", "({0} if {1} else {2})", "bool({0})",
                          "any([{0}, {1}])", "all(({0}, {1}))"))  # fmt: skip
        parts = [f"({self.condition(depth - 1)})" for _ in range(3)]
        if "w :=" in form and self.in_class:
            form = "{0}"
        return form.format(*parts)

    def platform(self) -> str:
        """The platform object, imported in one of its spellings."""
        line, name = self.pick((
            (f"from {ROOT}.platforms import current_platform", "current_platform"),
            (f"from {ROOT}.platforms import current_platform as cp", "cp"),
            (f"from {ROOT} import platforms", "platforms.current_platform"),
            (f"import {ROOT}.platforms as plat", "plat.current_platform"),
        ))  # fmt: skip
        self.uses(line)
        return name

    def _predicate(self) -> str:
        name = self.pick(("is_cuda", "is_rocm", "is_xpu", "is_cuda_alike"))
        return f"{self.platform()}.{name}()"

    def _device(self) -> str:
        form = self.pick(('{0}.device_type == "cuda"', '{0}.device_type in ("cuda", "rocm")',
                          '{0}.device_type in ("cudart")', '"cu" in {0}.device_type',
                          '{0}.device_type != {0}.device_name', '{0}.device_type not in {{"xpu"}}',
                          '{0}.device_type.startswith("c")',
                          'f"is_{{{0}.device_type}}" == "is_cuda"',
                          'hasattr({0}, "is_rocm")'))  # fmt: skip
        return form.format(self.platform())

    def _comparison(self) -> str:
        form = self.pick(("{0} == {1}", "{0} != {1}", "1 < {2} < 3", "0 <= {2}", "y is None",
                          "{3} is not None", "{2} < {2} < nowhere"))  # fmt: skip
        name = self.named("constant", CONSTANTS) or "TYPE_CHECKING"
        self.uses("from typing import TYPE_CHECKING")
        form = form.replace("y is None", "{3} is None")
        return form.format(self.constant(), self.constant(), self.number(), name)

    def number(self) -> str:
        """A number, most of the time."""
        # What is not known is taken to have the operators that are used on it.
        return (
            self.constant()
            if self.chance(10) and not self.world.open
            else self.pick(("1", "2", "0", "-1", "True"))
        )

    def constant(self) -> str:
        """A constant, or a name bound to one."""
        return self.named("constant", CONSTANTS) or self.pick(LITERALS)

    def _literal(self) -> str:
        return self.pick(LITERALS)

    def _type_checking(self) -> str:
        self.uses("from typing import TYPE_CHECKING")
        return "TYPE_CHECKING"

    def _read(self) -> str:
        return self.pick((self.constant, self._class_or_constant, self._attribute))()

    def _class_or_constant(self) -> str:
        return self.named("class", CLASSES) or self.constant()

    def _attribute(self) -> str:
        cls = self.named("class", CLASSES)
        return f"{cls}.{self.pick(ATTRIBUTES)}" if cls else self.constant()

    def _module_probe(self) -> str:
        module = self.named("module", ("platforms",))
        if not module:
            return self.constant()
        name = self.pick((*LAZY, *CLASSES))
        return self.pick((f'hasattr({module}, "{name}")', f'getattr({module}, "{name}", None)',
                          f'getattr({module}, "{name}", 7) == 7', f"{module}.{name}"))  # fmt: skip

    def _spec(self) -> str:
        self.uses("import importlib.util")
        names = ["present_lib", "missing_lib", self.any_module()]
        names += ["maybe_lib"] if LIBRARY in self.world.open else []
        form = self.pick(('importlib.util.find_spec("{0}") is not None',
                          'importlib.util.find_spec("{0}")'))  # fmt: skip
        return form.format(self.pick(names))

    def _loaded(self) -> str:
        self.uses("import sys")
        form = self.pick(('"{0}" in sys.modules', '"{0}" not in sys.modules',
                          'sys.modules.get("{0}") is None'))  # fmt: skip
        return form.format(self.pick([self.any_module(), self.any_module(), "missing_lib"]))

    def _call(self) -> str:
        function = self.named("function", FUNCTIONS)
        return f"bool({function}({self.pick(LITERALS)}))" if function else self.constant()

    def _membership(self) -> str:
        form = self.pick(("{0} in ({0}, {1})", "{0} in [{1}]", '"pangu" in ("pangu_ultra_moe")',
                          '"pangu" in ("pangu_ultra_moe",)', '{0} in {{"a": {1}}}',
                          "{0} not in ({1},)", 'len("abc") > {2}'))  # fmt: skip
        return form.format(self.constant(), self.constant(), self.number())

    def _open(self) -> str:
        kind = self.pick(self.world.open)
        if kind == VARIABLE:
            self.uses("import os")
            return self.pick((
                'os.environ.get("VLLM_SWITCH")', 'os.getenv("VLLM_SWITCH", "0") == "1"',
                'bool(int(os.getenv("VLLM_SWITCH", "0")))', '"VLLM_SWITCH" in os.environ',
            ))  # fmt: skip
        if kind == FLAG:
            self.uses("import present_lib")
            return self.pick(("present_lib.FLAG", "not present_lib.FLAG",
                              "present_lib.FLAG is True"))  # fmt: skip
        self.uses("import importlib.util")
        return 'importlib.util.find_spec("maybe_lib") is not None'

    def value(self) -> str:
        """An expression that is bound to a name."""
        made: Callable[[], str] = self.pick((
            self._literal, self._literal, self.constant, self.condition, self._arithmetic,
            self._sequence, lambda: self._formatted(), self._call, self._module_probe,
            lambda: f"{self.constant()} if {self.condition(1)} else {self.constant()}",
            lambda: f"{self.condition(1)} or {self.constant()}",
        ))  # fmt: skip
        return made()

    def _arithmetic(self) -> str:
        form = self.pick(("{0} + {1}", "{0} * 2", "{0} - 1", '"%s" % 5', "{0} // {1}"))
        return form.format(self.number(), self.number())

    def _sequence(self) -> str:
        form = self.pick(
            ("({0}, {1})", "[{0}]", '{{"k": {0}}}', '{{"k": {0}}}["k"]', "({0}, {1})[0]")
        )
        return form.format(self.constant(), self.constant())

    def _formatted(self) -> str:
        names = [self.named("constant", CONSTANTS) or "7" for _ in range(2)]
        return f'f"{{{names[0]}}}-{{{names[1]}!r}}"'

    # --- statements

    def statement(self, depth: int) -> Lines:
        """One statement; ``depth`` more may be nested."""
        writers = [self._assign, self._from, self._from, self._from, self._import, self._star,
                   self._third_party, self._class, self._class, self._class, self._assign,
                   self._function, self._patch, self._delete, self._by_name, self._augmented,
                   self._exported, self._unpacked, self._instance]  # fmt: skip
        if depth:
            writers += [self._if, self._if, self._if, self._try, self._try, self._try,
                        self._suppress, self._loop]  # fmt: skip
            writers += [self._raise] if depth < 2 or self.chance(10) else []
        return self.pick(writers)(depth)

    def block(self, depth: int, most: int = 3) -> Lines:
        count = 1 + self.pick(range(most))
        return [f"    {line}" for _ in range(count) for line in self.statement(depth)]

    def _spelled(self, target: str) -> str:
        """A module as ``from`` names it: absolute, or relative where that is possible."""
        package = self.module
        if not self.world.packages[self.module]:
            package = self.module.rpartition(".")[0]
        parts = package.split(".")
        for up in range(len(parts)):
            base = ".".join(parts[: len(parts) - up])
            if (target == base or target.startswith(f"{base}.")) and self.chance(60):
                return "." * (up + 1) + target[len(base) + 1 :]
        return target

    def _from(self, depth: int) -> Lines:
        module = self.any_module()
        if self.chance(25) and "." in module:
            parent, _, child = module.rpartition(".")
            bound = self.pick((child, child, "b"))
            self.bind(bound, "module")
            suffix = f" as {bound}" if bound != child else ""
            return [f"from {self._spelled(parent)} import {child}{suffix}"]
        pairs = [self.name_of(module) for _ in range(1 + self.chance(30))]
        names = []
        for name, kind in pairs:
            bound = self.pick((name, name, name, f"{name}2"))
            self.bind(bound, kind)
            names.append(f"{name} as {bound}" if bound != name else name)
        return [f"from {self._spelled(module)} import {', '.join(names)}"]

    def _import(self, depth: int) -> Lines:
        module = self.any_module()
        if self.chance(50):
            self.bind(ROOT, "module")
            return [f"import {module}"]
        bound = self.pick(("mod", "base", "b"))
        self.bind(bound, "module")
        return [f"import {module} as {bound}"]

    def _star(self, depth: int) -> Lines:
        if self.in_class:
            return self._assign(depth)
        module = self.any_module()
        for name, kind in self.world.exports.get(module, {}).items():
            self.bind(name, kind)
        return [f"from {self._spelled(module)} import *"]

    def _third_party(self, depth: int) -> Lines:
        lines = ["from present_lib import Thing", "import present_lib.sub"]
        if depth < 2 or self.chance(4):
            lines += ["import missing_lib", "from missing_lib.sub import Thing",
                      "import present_lib.missing"]  # fmt: skip
        if LIBRARY in self.world.open:
            lines += ["import maybe_lib", "from maybe_lib import Thing"]
        line = self.pick(lines)
        if line.endswith("Thing"):
            self.bind("Thing", "foreign")
        return [line]

    def _by_name(self, depth: int) -> Lines:
        self.uses("import importlib")
        name = self.pick((self.any_module(), self.any_module(), self.any_module(), "missing_lib"))
        self.bind("mod", "module")
        return [f'mod = importlib.import_module("{name}")']

    def _base(self) -> str:
        module = self.named("module", ("mod",))
        if module and self.chance(30):
            return f"{module}.{self.pick(CLASSES)}"
        foreign = self.named("foreign", ("Thing",)) if self.chance(15) else ""
        return foreign or self.named("class", CLASSES)

    def _class(self, depth: int) -> Lines:
        name = self.pick(CLASSES)
        candidates = (self._base() for _ in range(self.pick((1, 0, 1, 2, 3))))
        bases = list(dict.fromkeys(base for base in candidates if base))
        if self.chance(6):
            bases.append(self.pick(("object", "Exception")))
        outer, self.in_class = self.in_class, True
        body = [f"    {line}" for _ in range(self.pick((1, 2, 3))) for line in self._member(depth)]
        self.in_class = outer
        known = all(self.bound.get(base) == "class" for base in bases)
        self.bind(name, "class" if known else "foreign")
        return [f"class {name}({', '.join(bases)}):" if bases else f"class {name}:", *body]

    def _member(self, depth: int) -> Lines:
        name = self.pick(ATTRIBUTES)
        plain: list[Lines] = [
            ["pass"], [f"def {name}(self): return 1"], [f"{name} = None"], [f"{name}: int"],
            [f"{name}: int = {self.constant()}"], [f"{name} = {self.constant()}"],
        ]  # fmt: skip
        if depth and self.chance(20):
            line = f"def {name}(self): return 2"
            return [
                f"if {self.condition(1)}:",
                f"    {line}",
                "else:",
                f"    {self.pick((line, 'pass'))}",
            ]
        if self.chance(6):
            return [f"{name} = 1", f"del {name}"]
        if self.chance(5):
            return self.statement(0)
        return self.pick(plain)

    def _assign(self, depth: int) -> Lines:
        cls = self.named("class", CLASSES)
        if cls and self.chance(10):
            self.bind("Other", "class")
            return [f"Other = {cls}"]
        name = self.pick(CONSTANTS)
        line = f"{name} = {self.value()}"
        self.bind(name, "constant")
        return [line]

    def _instance(self, depth: int) -> Lines:
        cls = self.named("class", CLASSES)
        return [f"instance = {cls}()"] if cls and self.chance(30) else self._assign(depth)

    def _unpacked(self, depth: int) -> Lines:
        line = f"x, y = {self.constant()}, {self.constant()}"
        self.bind("x", "constant")
        self.bind("y", "constant")
        return [line]

    def _augmented(self, depth: int) -> Lines:
        name = self.named("constant", CONSTANTS)
        return [f"{name} += {self.number()}"] if name else self._assign(depth)

    def _exported(self, depth: int) -> Lines:
        if self.in_class:
            return self._assign(depth)
        names = [name for name in self.bound if not name.startswith("_")] or ["x"]
        chosen = [self.pick(names) for _ in range(2)]
        if self.chance(7):
            chosen.append(self.pick(("Lazy", "Foo", "missing")))
        shown = ", ".join(f'"{name}"' for name in dict.fromkeys(chosen))
        if "__all__" not in self.bound:
            self.bind("__all__", "list")
            return [f"__all__ = [{shown}]"]
        form = self.pick(("__all__ += [{0}]", "__all__.extend([{0}])", "__all__ = __all__ + [{0}]",
                          '__all__.append("x")'))  # fmt: skip
        return [form.format(shown)]

    def _function(self, depth: int) -> Lines:
        name = self.pick(FUNCTIONS)
        made: Callable[[], Lines] = self.pick((
            lambda: [f"return {self.condition(1)}"],
            lambda: [f"if {self.condition(1)}:", "    return True", "return False"],
            lambda: ["if value:", f"    return {self.constant()}"],
            lambda: ["return value"],
            lambda: ["try:", f"    import {self.pick(('present_lib', 'missing_lib'))}",
            "    return True",
                     "except ImportError:", "    return False"],
            lambda: ["for item in (1, 2, value):", f"    if item == {self.constant()}:",
                     "        return item", "return None"],
        ))  # fmt: skip
        body = made()
        self.bind(name, "function")
        return [f"def {name}(value):", *(f"    {line}" for line in body)]

    def _patch(self, depth: int) -> Lines:
        cls = self.named("class", CLASSES)
        if not cls:
            return self._assign(depth)
        name = self.pick(ATTRIBUTES)
        form = self.pick(("{0}.{1} = {2}", 'setattr({0}, "{1}", {2})', "{0}.{1} = lambda self: 1",
                          'if not hasattr({0}, "{1}"): {0}.{1} = {2}', "del {0}.{1}"))  # fmt: skip
        return [form.format(cls, name, self.constant())]

    def _delete(self, depth: int) -> Lines:
        known = list(self.bound)
        if not known or not self.chance(40):
            return self._assign(depth)
        name = self.pick(known)
        if not self.in_class:
            self.bound.pop(name)
        return [f"del {name}"]

    def _raise(self, depth: int) -> Lines:
        error = self.pick(ERRORS)
        return [self.pick((f'raise {error}("not here")', f"raise {error}",
                           f"raise {error}({self._formatted()})"))]  # fmt: skip

    def _if(self, depth: int) -> Lines:
        lines = [f"if {self.condition()}:", *self.block(depth - 1)]
        if self.chance(35):
            lines += [f"elif {self.condition()}:", *self.block(depth - 1)]
        if self.chance(55):
            lines += ["else:", *self.block(depth - 1)]
        return lines

    def _try(self, depth: int) -> Lines:
        lines = ["try:", *self.block(depth - 1)]
        handlers = 1 + self.chance(25)
        for _ in range(handlers):
            name = " as error" if self.chance(20) else ""
            lines += [f"except {self.pick(CAUGHT)}{name}:", *self._handler(depth)]
        if self.chance(30):
            lines += ["else:", *self.block(depth - 1, 1)]
        if self.chance(25):
            lines += ["finally:", *self.block(depth - 1, 1)]
        return lines

    def _handler(self, depth: int) -> Lines:
        if self.chance(50):
            name = self.pick((*CLASSES, *CONSTANTS))
            self.bind(name, "constant")
            return [f"    {name} = None"]
        made: Callable[[], Lines] = self.pick(
            (lambda: ["    pass"], lambda: self.block(depth - 1), lambda: ["    raise"])
        )
        return made()

    def _suppress(self, depth: int) -> Lines:
        self.uses("import contextlib")
        types = self.pick(("ImportError", "ImportError, AttributeError", "Exception"))
        return [f"with contextlib.suppress({types}):", *self.block(depth - 1)]

    def _loop(self, depth: int) -> Lines:
        values = ", ".join(self.pick(LITERALS) for _ in range(3))
        lines = [f"for y in ({values}):", *self.block(depth - 1, 2)]
        self.bind("y", "constant")
        if self.chance(30):
            lines += [f"    if {self.condition(1)}:", f"        {self.pick(('break', 'continue'))}"]
            lines += self.block(depth - 1, 1)
        if self.chance(25):
            lines += ["else:", *self.block(depth - 1, 1)]
        return lines

    # --- module __getattr__

    def _module_getattr(self) -> Lines:
        target = self.any_module()
        name, _ = self.name_of(target)
        self.uses("import importlib")
        raising = 'raise AttributeError(f"module {__name__!r} has no attribute {name!r}")'
        form = self.pick(_HOOKS)
        body = form.format(target=target, name=name, raising=raising, cond=self.condition(1),
                           constant=self.constant())  # fmt: skip
        before, _, after = body.rpartition("====\n")
        self.bind("Lazy", "class")
        return [*before.splitlines(), "def __getattr__(name):",
                *(f"    {line}" for line in after.splitlines())]  # fmt: skip


_HOOKS = (
    """\
if name == "Lazy":
    from {target} import {name}
    return {name}
{raising}
""",
    """\
if name in ("Lazy", "flag"):
    module = importlib.import_module("{target}")
    return getattr(module, "{name}")
{raising}
""",
    """\
_names = {{"Lazy": "{target}", "b": "{target}"}}
====
if name in _names:
    return getattr(importlib.import_module(_names[name]), "{name}")
{raising}
""",
    """\
_names = {{"Lazy": "{target}"}}
====
if name not in _names:
    {raising}
value = importlib.import_module(_names[name])
globals()[name] = value
return value
""",
    """\
if name in {{"Lazy", "Foo"}}:
    if {cond}:
        return {constant}
    import {target} as module
    return module
{raising}
""",
    """\
if {cond}:
    if name == "Lazy":
        return 5
elif name == "flag":
    return 6
raise AttributeError(name)
""",
    """\
if name in __all__:
    return importlib.import_module("{target}")
{raising}
""",
    """\
try:
    return globals()["_" + name]
except KeyError:
    {raising}
""",
)
