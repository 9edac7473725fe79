"""The recipe as a pytest file in vLLM's style, which depends on vLLM alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from textwrap import dedent

import msgspec

from auditor.ruleset.harness import harness_rule
from codemods.harness.parts import (
    BARE,
    BIAS,
    DEFAULT_STEP,
    LICENSE,
    MAKE_HEAD,
    RANDOM,
    REDUCE,
    TABLE,
    TESTS,
    TIES,
)
from codemods.harness.recipe import (
    Bare,
    Head,
    Nothing,
    Number,
    Processor,
    Real,
    Recipe,
    Several,
    Table,
    Thing,
)

#: A head whose own class is not known is built as this one.
_HEAD = "vllm.model_executor.layers.vocab_parallel_embedding.ParallelLMHead"

#: The longest line of the file.
_WIDTH = 88


class Subject(msgspec.Struct):
    """What one test file is about.

    Attributes:
        architecture: the entry of the registry.
        brief: how the draft reaches its head, in a few words.
        capability, agrees_with: the method, and the one that it must agree with.
        platforms: predicates of ``current_platform`` where the class exists; none for all.
        recipes: the models to build.
    """

    architecture: str
    brief: str
    capability: str
    agrees_with: str
    platforms: tuple[str, ...]
    recipes: tuple[Recipe, ...]


def file_of(subject: Subject) -> str:
    """The source of the test file."""
    return _File(subject).text()


class _File:
    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._imports: dict[str, set[str]] = {}
        self._names: dict[str, str] = {}
        self._tables = any(recipe.remap for recipe in subject.recipes)

    def text(self) -> str:
        """The whole file."""
        makers = [
            "\n".join(self._maker(recipe, index))
            for index, recipe in enumerate(self._subject.recipes)
        ]
        body = [*self._helpers(), *makers, *self._tests()]
        parts = [f"{LICENSE}{self._doc()}\n{self._head()}", *(part.strip("\n") for part in body)]
        lines = "\n\n\n".join(parts).split("\n")
        return "\n".join(map(_fitted, lines)) + "\n"

    # --- head

    def _doc(self) -> str:
        subject = self._subject
        first = (
            f"``{subject.capability}`` of {subject.architecture} against the argmax of"
            f" ``{subject.agrees_with}``."
        )
        parts = [
            "With ``use_local_argmax_reduction`` each rank takes the argmax of its own vocabulary"
            " shard, which must pick a token that no other beats in the whole row of logits. The"
            f" logits are ``{subject.brief}``."
        ]
        if any(recipe.pre_head for recipe in subject.recipes):
            parts.append(
                "A step before the head that is left out raises nothing, it drafts other tokens."
                " Gains are random here: with gains of one the argmax would not tell."
            )
        wrapped = [textwrap.fill(part, _WIDTH, break_long_words=False) for part in parts]
        return (
            '"""' + "\n\n".join([textwrap.fill(first, _WIDTH - len('"""')), *wrapped]) + '\n"""\n'
        )

    def _head(self) -> str:
        lines = ["from unittest import mock", "", "import pytest", "import torch"]
        lines += ["from torch import nn", ""]
        if any(".SimpleNamespace" in name for name in self._used()):
            lines.insert(0, "from types import SimpleNamespace")
        self._name("vllm.platforms.current_platform")
        own = {m: n for m, n in self._imports.items() if m.partition(".")[0] == "vllm"}
        late = self._late(own)
        lines += _imports({m: n for m, n in own.items() if m not in late})
        if late:
            lines += ["", *self._skip(), "", *_imports({m: own[m] for m in late}, late=True)]
        rule = harness_rule().constants
        lines += [
            "",
            "DEVICE_TYPE = current_platform.device_type",
            *(f"{name} = {value!r}" for name, value in sorted(rule.items()) if self._says(name)),
            '_EMBEDDING = "vllm.model_executor.layers.vocab_parallel_embedding"',
            '_PROCESSOR = "vllm.model_executor.layers.logits_processor"',
        ]
        return "\n".join(lines)

    def _late(self, own: dict[str, set[str]]) -> set[str]:
        """Modules that are imported once it is sure that they exist on the platform."""
        if not self._subject.platforms:
            return set()
        return {m for m in own if m.startswith(("vllm.models.", "vllm.model_executor.models."))}

    def _skip(self) -> list[str]:
        wanted = " or ".join(f"current_platform.{name}()" for name in self._subject.platforms)
        names = ", ".join(name.removeprefix("is_") for name in self._subject.platforms)
        condition = [f"if not ({wanted}):" if " or " in wanted else f"if not {wanted}:"]
        if len(wanted) > _WIDTH - 4:
            asked = wanted.replace(" or ", "\n    or ")
            condition = ["if not (", *f"    {asked}".split("\n"), "):"]
        return [
            *condition,
            "    pytest.skip(",
            f'        "{self._subject.architecture} is this class on {names} only.",',
            "        allow_module_level=True,",
            "    )",
        ]

    def _says(self, constant: str) -> bool:
        texts = [text for recipe in self._subject.recipes for text in _words(recipe.model)]
        always = {"HIDDEN_SIZE"} | ({"NUM_STEPS"} if self._steps() else set())
        return constant in always or any(constant in text for text in texts)

    def _used(self) -> Iterator[str]:
        for recipe in self._subject.recipes:
            yield from recipe.classes()

    def _name(self, dotted: str) -> str:
        """The name that a class has in the test, which imports it."""
        if dotted.startswith("torch.nn."):
            return "nn." + dotted.rpartition(".")[2]
        if dotted.startswith("types."):
            return dotted.rpartition(".")[2]
        module, _, name = dotted.rpartition(".")
        own = name
        while self._names.setdefault(own, dotted) != dotted:
            own = f"Other{own}"  # two modules have a class of this name
        self._imports.setdefault(module, set()).add(name if own == name else f"{name} as {own}")
        return own

    # --- helpers

    def _helpers(self) -> list[str]:
        real = any(_has_real(recipe.model) for recipe in self._subject.recipes)
        biased = any(_has_bias(recipe.model) for recipe in self._subject.recipes)
        head = MAKE_HEAD.replace("@@BIAS", BIAS if biased else "")
        parts = [BARE, *([RANDOM] if real else []), head]
        if self._tables:
            parts.append(TABLE)
        return [dedent(part) for part in [*parts, REDUCE]]

    # --- the model

    def _maker(self, recipe: Recipe, index: int) -> Iterator[str]:
        name = f"_make_model_{index}" if len(self._subject.recipes) > 1 else "_make_model"
        yield f"def {name}(vocab_size, rank=0, tp_size=1, tied=False):"
        said = f" ({recipe.name})" if recipe.name else ""
        yield f'    """Only what the two methods read{said}, without decoder layers."""'
        yield "    shard = vocab_size, rank, tp_size, tied"
        yield f"    model = _bare({self._name(recipe.model.cls)})"
        yield from self._parts("model", recipe.model.parts, "    ")
        yield "    return model.to(DEVICE_TYPE)"

    def _parts(self, owner: str, parts: dict[str, Thing], indent: str) -> Iterator[str]:
        for name, thing in parts.items():
            yield from self._part(f"{owner}.{name}", thing, indent)

    def _part(self, target: str, thing: Thing, indent: str) -> Iterator[str]:
        match thing:
            case Bare(cls=cls, parts=parts):
                made = (
                    f"{self._name(cls)}()"
                    if cls.startswith("types.")
                    else f"_bare({self._name(cls)})"
                )
                yield f"{indent}{target} = {made}"
                yield from self._parts(target, parts, indent)
            case Several(cls=cls, key=key, item=item) if item is not None:
                yield f"{indent}{target} = {self._name(cls)}()"
                yield f"{indent}for step in range(NUM_STEPS):"
                inner = f"{indent}    "
                yield from self._part("layer", item, inner)
                yield (
                    f"{inner}{target}.append(layer)"
                    if thing.listed
                    else f"{inner}{target}[{key}] = layer"
                )
            case _:
                yield f"{indent}{target} = {self._leaf(thing, indent, target)}"

    def _leaf(self, thing: Thing, indent: str, target: str) -> str:
        step = "step" if target.startswith("layer") else "0"
        match thing:
            case Nothing():
                return "None"
            case Number(constant=constant):
                return "2 * vocab_size" if constant == "TARGET_SIZE" else constant
            case Table():
                return "_make_table(vocab_size)"
            case Processor(cls=cls, arguments=arguments):
                return f"{self._name(cls)}({', '.join(arguments)})"
            case Head(cls=cls, bias=bias):
                head = self._name(cls or _HEAD)
                more = ", bias=True" if bias else ""
                return f"_make_head({head}, shard, {step}{more})"
            case Real(cls=cls, arguments=arguments):
                return f"_randomized({self._name(cls)}({', '.join(arguments)}), {step})"
            case _:
                raise AssertionError(thing)

    # --- tests

    def _steps(self) -> bool:
        return any(recipe.per_step for recipe in self._subject.recipes)

    def _tests(self) -> Iterator[str]:
        subject = self._subject
        several = len(subject.recipes) > 1
        makers = [f"_make_model_{index}" for index in range(len(subject.recipes))]
        for text in (*TESTS, TIES):
            text = dedent(text)
            if several:
                listed = f'@pytest.mark.parametrize("make_model", [{", ".join(makers)}])\n'
                text = text.replace("@@MAKERS\n", listed).replace("@@MAKE", "make_model")
                text = text.replace(
                    "default_vllm_config, num", "default_vllm_config, make_model, num"
                )
            else:
                text = text.replace("@@MAKERS\n", "").replace("@@MAKE", "_make_model")
            if self._steps():
                text = text.replace(
                    "@@STEPS\n", '@pytest.mark.parametrize("step", range(NUM_STEPS))\n'
                )
                step = subject.recipes[0].step
                text = text.replace("@@STEP", f", {step}=step")
            else:
                text = text.replace("@@STEPS\n", "").replace("@@STEP", "")
            arguments = [*(["make_model"] if several else []), *(["step"] if self._steps() else [])]
            text = text.replace("@@ARGUMENTS", "".join(f", {name}" for name in arguments))
            yield text.replace("@@LOGITS", subject.agrees_with).replace("@@TOP", subject.capability)
        if self._subject.recipes[0].step:
            text = dedent(DEFAULT_STEP).replace("@@STEP", self._subject.recipes[0].step)
            make = "_make_model_0" if several else "_make_model"
            text = text.replace("@@MAKE", make).replace("@@TOP", subject.capability)
            yield text.replace("@@LOGITS", subject.agrees_with)


def _fitted(line: str) -> str:
    """A line that is too long, broken inside its outermost brackets."""
    opens = line.find("(")
    closes = line.rfind(")")
    if len(line) <= _WIDTH or opens < 0 or line.lstrip().startswith(("#", '"')):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    inner = line[opens + 1 : closes]
    return f"{line[: opens + 1]}\n{indent}    {inner}\n{indent}{line[closes:]}"


def _imports(modules: dict[str, set[str]], late: bool = False) -> Iterable[str]:
    mark = "  # noqa: E402" if late else ""
    for module in sorted(modules):
        names = sorted((n for n in modules[module] if " as " not in n), key=str.lower)
        renamed = sorted(modules[module].difference(names))
        # As isort has it: a name that is imported as another has a statement of its own.
        yield from (f"from {module} import {name}{mark}" for name in renamed)
        if not names:
            continue
        line = f"from {module} import {', '.join(names)}{mark}"
        if len(line) <= 88:
            yield line
        else:
            yield f"from {module} import ({mark}"
            yield from (f"    {name}," for name in names)
            yield ")"


def _words(thing: Thing) -> Iterator[str]:
    """The sources of arguments, keys and numbers in a thing."""
    match thing:
        case Bare(parts=parts):
            for part in parts.values():
                yield from _words(part)
        case Several(key=key, item=item):
            yield key
            yield "NUM_STEPS"
            if item is not None:
                yield from _words(item)
        case Real(arguments=arguments) | Processor(arguments=arguments):
            yield from arguments
        case Number(constant=constant):
            yield constant
        case _:
            return


def _has_bias(thing: Thing) -> bool:
    match thing:
        case Bare(parts=parts):
            return any(map(_has_bias, parts.values()))
        case Several(item=item) if item is not None:
            return _has_bias(item)
        case _:
            return isinstance(thing, Head) and thing.bias


def _has_real(thing: Thing) -> bool:
    match thing:
        case Bare(parts=parts):
            return any(map(_has_real, parts.values()))
        case Several(item=item) if item is not None:
            return _has_real(item)
        case _:
            return isinstance(thing, Real)
