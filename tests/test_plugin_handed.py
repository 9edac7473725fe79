"""What plugins hand to code that is not followed, and stores of which it is not known into what."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees.plugins import WITH_METHOD, audited, events, general, on_rocm, platform, pyproject, row

from auditor.errors import UsageError

DRAFT = "from vllm.models.draft.amd import Draft"
IMPORT = "from vllm import ModelRegistry"
TABLES = "from vllm.model_executor.models import registry"
PATCHED = "Draft.get_top_tokens = lambda self, h: None"
FUNCTION = f"def go():\n    {PATCHED}"

OPEN = {
    "a class to a library": f"{DRAFT}\nimport other\nother.patch(Draft)",
    "a class among others": f"{DRAFT}\nimport other\nother.patch([Draft])",
    "a class to partial": f'{DRAFT}\nimport functools\nfunctools.partial(setattr, Draft, "x")(1)',
    "a class to type": f'{DRAFT}\ntype.__setattr__(Draft, "get_top_tokens", None)',
    "a class to a mapped function": f'{DRAFT}\nlist(map(lambda c: setattr(c, "x", 1), [Draft]))',
    "a function that patches": f"{DRAFT}\nimport threading\n{FUNCTION}\n"
    "threading.Thread(target=go).start()",
    "a coroutine": f"{DRAFT}\nimport asyncio\nasync {FUNCTION}\nasyncio.run(go())",
    "a generator": f"{DRAFT}\n{FUNCTION}\n    yield 1\nlist(go())",
    "the method that registers": f"{IMPORT}\nimport functools\n"
    'functools.partial(ModelRegistry.register_model, "DraftModel")("mine.models:Mine")',
    "what registers, mapped": (
        f"{IMPORT}\nlist(map(lambda t: ModelRegistry.register_model(*t), []))"
    ),
    "a dotted name and a function": (
        "import other\nother.wrap('vllm.models.draft.amd', lambda: None)"
    ),
    "a decorator that patches by name": (
        "import wrapt\n@wrapt.patch_function_wrapper('vllm.models.draft.amd', 'Draft.forward')\n"
        "def go(wrapped, instance, args, kwargs):\n    return None"
    ),
    "text that is run": f'{DRAFT}\nexec("Draft.get_top_tokens = None")',
    "an object that is not known": (
        "import other\nother.find().get_top_tokens = lambda self, h: None"
    ),
    "an attribute of an object": (
        f"{DRAFT}\nclass Patch:\n    def __init__(self, c):\n        self.c = c\n"
        "    def go(self):\n        self.c.get_top_tokens = None\nPatch(Draft).go()"
    ),
    "a module of unknown name": (
        "import os, sys, mine.models\nsys.modules[os.environ['MINE']] = mine.models"
    ),
    "other bases": f"{DRAFT}\nfrom mine.models import Mine\nDraft.__bases__ = (Mine,)",
}
#: What looks like it, and can change nothing of the package.
CLOSED = {
    "a class of its own": "from mine.models import Mine\nimport other\nother.patch(Mine)",
    "a class to a reader": f"{DRAFT}\nimport inspect\ninspect.getsource(Draft)",
    "a class to isinstance": f"{DRAFT}\nisinstance(1, Draft)",
    "a function without effects": (
        "import threading\ndef go():\n    return 1\nthreading.Thread(target=go)"
    ),
    "a decorator that reads": (
        f"{DRAFT}\nimport functools\n@functools.wraps(Draft)\ndef go():\n    return None"
    ),
    "another attribute of what is not known": "import other\nother.find().name = 1",
    "a dotted name alone": "import logging\nlogging.getLogger('vllm.models.draft.amd')",
}


@pytest.mark.parametrize("how", OPEN)
def test_what_is_handed_on_leaves_the_row_open(tmp_path: Path, how: str) -> None:
    document = on_rocm(tmp_path, general(OPEN[how]))
    assert row(document).verdict == "?"
    assert any(event.path == "mine/__init__.py" and event.line > 1 for event in events(document))


@pytest.mark.parametrize("how", CLOSED)
def test_what_changes_nothing_leaves_the_row_as_it_is(tmp_path: Path, how: str) -> None:
    document = on_rocm(tmp_path, general(CLOSED[how]))
    assert (row(document).verdict, events(document)) == ("no", [])


REGISTERS = {
    "an update with pairs": f"{TABLES}\nregistry._SPECULATIVE_DECODING_MODELS.update("
    '[("DraftModel", ("mine.models", "Mine"))])',
    "a table in its place": f"{TABLES}\nregistry._SPECULATIVE_DECODING_MODELS = {{"
    '**registry._SPECULATIVE_DECODING_MODELS, "DraftModel": ("mine.models", "Mine")}',
    "names of a module and a class": f"{IMPORT}\nimport mine.models as m\n"
    'ModelRegistry.register_model("DraftModel", f"{m.__name__}:{m.Mine.__name__}")',
}


@pytest.mark.parametrize("how", REGISTERS)
def test_a_registration_is_followed(tmp_path: Path, how: str) -> None:
    document = on_rocm(tmp_path, general(REGISTERS[how]))
    assert row(document).module == "mine.models"
    assert row(document, "OtherDraftModel").module == "vllm.models.draft.amd"


def test_modules_are_replaced_by_an_update(tmp_path: Path) -> None:
    body = 'import sys, mine.models\nsys.modules.update({"vllm.models.draft.amd": mine.models})'
    models = {"mine/models.py": WITH_METHOD.replace("Mine", "Draft")}
    assert row(on_rocm(tmp_path, general(body, models))).module == "mine.models"


def test_a_decorator_that_sets_a_function_by_its_own_name_counts(tmp_path: Path) -> None:
    body = (
        f"{DRAFT}\ndef on(cls):\n    def set_it(function):\n"
        "        setattr(cls, function.__name__, function)\n        return function\n"
        "    return set_it\n@on(Draft)\ndef get_top_tokens(self, h):\n    return None"
    )
    assert row(on_rocm(tmp_path, general(body))).hasattr is True


@pytest.mark.parametrize("call", ['"DraftModel", "mine.models.Mine"', '3, "mine.models:Mine"'])
def test_a_registration_that_raises_fails(tmp_path: Path, call: str) -> None:
    document = on_rocm(tmp_path, general(f"{IMPORT}\nModelRegistry.register_model({call})"))
    assert [event.outcome for event in events(document)] == ["failed"]
    assert row(document).verdict == "no"


HAS = "from vllm.models.draft.nvidia import Draft"
PATCH = "Draft.get_top_tokens = lambda self, h: None"
DEAD = {
    "getattr is None": f'{HAS}\nif getattr(Draft, "get_top_tokens", None) is None:\n    {PATCH}',
    "not getattr": f'{HAS}\nif not getattr(Draft, "get_top_tokens", None):\n    {PATCH}',
    "through a function": (
        f"{HAS}\ndef put(cls, name, function):\n    if not hasattr(cls, name):\n"
        '        setattr(cls, name, function)\nput(Draft, "get_top_tokens", lambda self, h: None)'
    ),
    "in a loop": (
        f'{HAS}\nfor cls in (Draft,):\n    if hasattr(cls, "get_top_tokens"):\n'
        "        continue\n    cls.get_top_tokens = lambda self, h: None"
    ),
}


@pytest.mark.parametrize("how", DEAD)
def test_a_guard_that_has_become_false_is_told(tmp_path: Path, how: str) -> None:
    dead = on_rocm(tmp_path / "dead", general(DEAD[how]))
    assert [event.outcome for event in events(dead)] == ["dead"]
    assert "SD401" in {finding.code for finding in dead.findings}
    twin = on_rocm(tmp_path / "twin", general(DEAD[how].replace("nvidia", "amd")))
    assert [event.outcome for event in events(twin)] == ["applied"]
    assert row(twin).hasattr is True


def test_an_attribute_that_is_deleted_is_an_event(tmp_path: Path) -> None:
    document = on_rocm(tmp_path, general(f"{HAS}\ndel Draft.get_top_tokens"))
    (event,) = events(document, "attribute")
    assert (event.target, event.reason) == (
        "vllm.models.draft.nvidia.Draft.get_top_tokens",
        "it is deleted",
    )


def test_entry_points_that_cannot_be_read_leave_rows_open(tmp_path: Path) -> None:
    setup = "from setuptools import setup\nsetup(name='vllm-mine', entry_points=made())\n"
    files = general("pass", {"setup.py": setup})
    del files["pyproject.toml"]
    document = on_rocm(tmp_path, files)
    assert row(document).verdict == "?"
    (event,) = events(document)
    assert (event.path, event.line, event.outcome) == ("vllm-mine/setup.py", 2, "undecided")


@pytest.mark.parametrize("depth", [700, 3000])
def test_a_function_that_is_nested_too_deeply_ends_nothing(tmp_path: Path, depth: int) -> None:
    document = on_rocm(tmp_path, general(f"x = a{'.b' * depth}"))
    assert {event.outcome for event in events(document)} <= {"failed", "undecided"}
    assert row(document, "OtherDraftModel").module in (None, "vllm.models.draft.amd")


def test_a_plugin_called_like_a_platform_of_the_release_is_refused(tmp_path: Path) -> None:
    files = platform("OOT")
    files["pyproject.toml"] = pyproject(platform="mine:register", name="rocm")
    with pytest.raises(UsageError, match="called like a built-in one"):
        audited(tmp_path, files)
