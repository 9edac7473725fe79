"""The hypothesis strategy for :class:`~tests.differential.trees.Tree`."""

from __future__ import annotations

from hypothesis import strategies as st

from differential.author import Author
from differential.trees import OPEN_KINDS, PLATFORMS, ROOT, Tree
from differential.world import LAZY, Choices, World

_MODULES = ("vllm.a", "vllm.p.b", "vllm.p.c", "vllm.p.r.d", "vllm.q.e", "vllm.q.x")

#: More than a package needs, nearly always.
_BYTES = 768


def trees(open_conditions: bool = False) -> st.SearchStrategy[Tree]:
    """A package of three to eight modules besides the root and its platforms."""
    data = st.binary(min_size=_BYTES, max_size=_BYTES)
    return data.map(lambda drawn: tree(drawn, open_conditions))


def tree(data: bytes, open_conditions: bool) -> Tree:
    """The package that a string of bytes stands for."""
    choices = Choices(data)
    kinds = {choices.pick(OPEN_KINDS), choices.pick(OPEN_KINDS)} if open_conditions else ()
    world = World(choices, {ROOT: True}, tuple(sorted(kinds)))
    for module in choices.order(_MODULES)[: choices.pick((2, 3, 4, 5))]:
        parts = module.split(".")
        for end in range(2, len(parts)):
            world.packages[".".join(parts[:end])] = True
        world.packages[module] = False
    files = {"vllm/platforms/__init__.py": PLATFORMS}
    modules = sorted(world.packages)
    root_statements = choices.pick((0, 0, 0, 1))
    for module in choices.order(modules):
        nested = world.packages[module] and module.count(".") == 1
        if nested and not root_statements and choices.chance(10):
            continue  # a folder without __init__.py
        statements = root_statements if module == ROOT else _length(world, module)
        text = Author(world, module).text(statements)
        path = module.replace(".", "/")
        files[f"{path}/__init__.py" if world.packages[module] else f"{path}.py"] = text
    entries = choices.order(modules)
    probes = [(module, name) for module in modules for name in (choices.pick(LAZY), "nothing")]
    return Tree(files, entries, probes, world.open)


def _length(world: World, module: str) -> int:
    return world.choices.pick((0, 1, 2, 4) if world.packages[module] else (1, 3, 4, 5, 6))
