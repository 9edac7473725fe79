"""Expressions and conditions at random, in the spellings that vLLM's modules use.

A :class:`Reader` knows which names a module has bound so far and of which kind, so that most of
what it reads exists; now and then it reads any name, which may not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from differential.trees import ATTRIBUTES, FLAG, LIBRARY, ROOT, VARIABLE
from differential.world import CLASSES, CONSTANTS, FUNCTIONS, LAZY, World

LITERALS = ("0", "1", "2", "-1", "True", "False", "None", '""', '"cuda"', '"cu"', "()", "3.5")


class Reader:
    """Writes what one module reads.

    ``bound`` are its names so far, each with its kind, and ``sure`` those of classes that no
    branch decides; ``needs`` are the imports that it starts with.
    """

    def __init__(self, world: World, module: str) -> None:
        self.world = world
        self.module = module
        self.pick, self.chance = world.choices.pick, world.choices.chance
        self.bound: dict[str, str] = {}
        self.needs: dict[str, None] = {}
        self.sure: set[str] = set()
        self.in_class = False

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
            self.sure.discard(name)

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
