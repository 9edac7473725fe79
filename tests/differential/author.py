"""Writes the modules of mini packages at random, in the spellings that vLLM's modules use."""

from __future__ import annotations

from collections.abc import Callable

from differential.conditions import LITERALS, Reader
from differential.hooks import HOOKS
from differential.trees import ATTRIBUTES, LIBRARY, ROOT
from differential.world import CLASSES, CONSTANTS, FUNCTIONS

Lines = list[str]

#: How deep statements nest: the depth of those at the top level of a module.
TOP = 2

ERRORS = ("ImportError", "ModuleNotFoundError", "AttributeError", "NotImplementedError",
          "ValueError", "KeyError")  # fmt: skip
CAUGHT = ("ImportError", "(ImportError, AttributeError)", "ModuleNotFoundError", "Exception",
          "AttributeError", "NameError", "(NameError, TypeError)")  # fmt: skip


class Author(Reader):
    """Writes one module."""

    def text(self, statements: int) -> str:
        """The source of the module."""
        body = [line for _ in range(statements) for line in self.statement(TOP)]
        if self.chance(25):
            body += self._module_getattr()
        self.world.exports[self.module] = dict(self.bound)
        return "\n".join([*self.needs, *body]) + "\n"

    def statement(self, depth: int) -> Lines:
        """One statement; ``depth`` more may be nested."""
        writers = [self._assign, self._from, self._from, self._from, self._import, self._star,
                   self._third_party, self._class, self._class, self._class, self._assign,
                   self._function, self._patch, self._delete, self._by_name, self._augmented,
                   self._exported, self._unpacked, self._instance, self._effect, self._effect,
                   self._decorated, self._registered, self._annotated,
                   self._perhaps_gone]  # fmt: skip
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
        if depth == TOP and not self.in_class:
            self.sure.add(name)
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
        name = "" if self.world.open else self.named("constant", CONSTANTS)
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
        # A store into what only some branches bind is taken to be made.
        if not cls or (self.world.open and cls not in self.sure):
            return self._assign(depth)
        name = self.pick(ATTRIBUTES)
        form = self.pick(("{0}.{1} = {2}", 'setattr({0}, "{1}", {2})', "{0}.{1} = lambda self: 1",
                          'if not hasattr({0}, "{1}"): {0}.{1} = {2}', "del {0}.{1}"))  # fmt: skip
        return [form.format(cls, name, self.constant())]

    def _effect(self, depth: int) -> Lines:
        """A function that does something to others when it is called, and a call of it."""
        if self.in_class:
            return self._assign(depth)
        cls, name = self.named("class", CLASSES), self.pick(CONSTANTS)
        made: list[Lines] = [
            ["global y", f"y = {self.pick(LITERALS)}"],
            [f'globals()["y"] = {self.pick(LITERALS)}'],
            [f"if {self.condition(1)}:", f'    raise {self.pick(ERRORS)}("from a call")'],
            ["import present_lib.sub", "return 1"],
            [f"return {name}" if self.bound.get(name) == "constant" else "return 1"],
        ]
        if cls and (cls in self.sure or not self.world.open):
            attribute = self.pick(ATTRIBUTES)
            made += [[f"{cls}.{attribute} = {self.constant()}"],
                     [f'setattr({cls}, "{attribute}", 1)']]  # fmt: skip
        table = []
        if depth == TOP and not self.world.open:
            table = ["table = {}"]
            made += [[f"table[{self.pick(LITERALS[:5])}] = 1"], ['table.setdefault("k", 2)']]
        body = self.pick(made)
        self.bind("y", "constant")
        lines = [*table, "def act():", *(f"    {line}" for line in body)]
        if body[-1].startswith("return") and self.chance(50):
            return [*lines, "x = act()", f"{name} = {self.pick(LITERALS)}"]
        if depth and self.chance(40):
            return [*lines, "try:", "    act()", f"except {self.pick(CAUGHT)}:", "    pass"]
        return [*lines, "act()", *(["x = len(table)"] if table else [])]

    def _decorated(self, depth: int) -> Lines:
        """A class under a decorator that changes, replaces or refuses it."""
        if self.in_class or depth < TOP or self.world.open:
            return self._class(depth)
        made: list[Lines] = [
            [f"cls.{self.pick(ATTRIBUTES)} = 1", "return cls"],
            [f"if {self.condition(1)}:", f'    raise {self.pick(ERRORS)}("refused")', "return cls"],
            ["class Wrapped(cls):", f"    {self.pick(ATTRIBUTES)} = 2", "return Wrapped"],
        ]
        body = self.pick(made)
        return ["def deco(cls):", *(f"    {line}" for line in body), "@deco", *self._class(depth)]

    def _registered(self, depth: int) -> Lines:
        """A class whose instance does something when it is asked to, and the asking."""
        cls = self.named("class", CLASSES)
        sure = cls and (cls in self.sure or not self.world.open)
        if self.in_class or depth < TOP or not sure:
            return self._assign(depth)
        attribute = self.pick(ATTRIBUTES)
        body: Lines = self.pick((
            [f"cls.{attribute} = 1"],
            [f'setattr(cls, "{attribute}", {self.constant()})'],
            [f"if {self.condition(1)}:", f'    raise {self.pick(ERRORS)}("refused")'],
            ["global y", f"y = {self.pick(LITERALS)}"],
            ["self.table[1] = 2"],
        ))  # fmt: skip
        self.bind("y", "constant")
        form = self.pick(("registry.add({0})", "registry({0})", "Registry().add({0})",
                          "registry.both({0})", "z: registry.add({0}) = 1"))  # fmt: skip
        return ["class Registry:", "    table = {}", "    def add(self, cls):",
                *(f"        {line}" for line in body),
                "    def both(self, cls): self.add(cls)",
                "    def __call__(self, cls): self.add(cls)",
                "registry = Registry()", form.format(cls), "x = len(Registry.table)"]  # fmt: skip

    def _annotated(self, depth: int) -> Lines:
        """What Python evaluates for an annotation, and no more than that."""
        function = self.named("function", FUNCTIONS)
        if not function or self.in_class:
            return self._assign(depth)
        name = self.pick(CONSTANTS)
        if self.chance(50):
            return [f"def noted(a: {function}(1)) -> {function}(0): pass"]
        return [f"noted: {function}({self.pick(LITERALS)}) = {name}"
                if self.bound.get(name) == "constant" else f"noted: {function}(1)"]  # fmt: skip

    def _perhaps_gone(self, depth: int) -> Lines:
        """Something that a library may lack, where a handler deals with that."""
        if self.in_class or not self.chance(12):
            return self._third_party(depth)
        self.uses("import present_lib")
        body, error = self.pick((
            ("z = present_lib.gone", "AttributeError"), ("z = present_lib.FLAG", "AttributeError"),
            ("z = present_lib.function(1)", "Exception"),
            ("from present_lib import FLAG as z", "ImportError"),
        ))  # fmt: skip
        # Not a constant: what is not known is taken to have what is done with it.
        self.bind("z", "unknown")
        return ["try:", f"    {body}", f"except {error}:", f"    z = {self.pick(LITERALS)}"]

    def _delete(self, depth: int) -> Lines:
        known = list(self.bound)
        if not known or not self.chance(40):
            return self._assign(depth)
        name = self.pick(known)
        if not self.in_class:
            self.bound.pop(name)
            self.sure.discard(name)
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
        # What only a doubt leaves behind is not followed through ``finally``.
        if self.chance(25) and not self.world.open:
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

    def _module_getattr(self) -> Lines:
        target = self.any_module()
        name, _ = self.name_of(target)
        self.uses("import importlib")
        raising = 'raise AttributeError(f"module {__name__!r} has no attribute {name!r}")'
        form = self.pick(HOOKS)
        body = form.format(target=target, name=name, raising=raising, cond=self.condition(1),
                           constant=self.constant())  # fmt: skip
        before, _, after = body.rpartition("====\n")
        self.bind("Lazy", "class")
        return [*before.splitlines(), "def __getattr__(name):",
                *(f"    {line}" for line in after.splitlines())]  # fmt: skip
