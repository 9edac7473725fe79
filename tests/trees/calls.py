"""What calls made while a module loads do: raise, bind, register, patch; and what hides them."""

from __future__ import annotations

from textwrap import dedent

from trees.minivllm import INIT, Answer, Case, Side, fails, has, lacks, undecided

HEAD = """\
import contextlib
from vllm.platforms import current_platform
class Has:
    def compute_logits(self, h): ...
    def get_top_tokens(self, h): ...
class Lacks:
    def compute_logits(self, h): ...
"""

HAS = has("vllm.models.draft.Has")
LACKS = lacks("vllm.models.draft.Lacks")
OWN = has("vllm.models.draft.Draft")


def module(text: str, answer: Answer) -> Side:
    """A draft module after two classes."""
    return Side({INIT: HEAD + dedent(text)}, {"else": answer})


OPEN_ASSERTION = undecided(
    "loads unless AssertionError:  (current_platform.has_device_capability() depends on the "
    "device; --assume has_device_capability=VALUE decides it)"
)

TABLE = """
table = {}
def register(name, cls):
    table[name] = cls
"""

HELPER = """
def add(cls):
    cls.get_top_tokens = lambda self, h: None
class Draft:
    def compute_logits(self, h): ...
"""

MAKER = """
class Base:
    def __init_subclass__(cls, **kwargs):
        {text}
class Draft(Base):
    def compute_logits(self, h): ...
"""

META = """
class Meta(type):
    def __init__(cls, name, bases, namespace):
        {text}
class Draft(metaclass=Meta):
    def compute_logits(self, h): ...
"""

GUARD = """
class Guard:
    def __enter__(self): return self
    def __exit__(self, kind, value, trace): return {value}
Draft = Lacks
with Guard():
    raise ImportError("no")
"""

CASES = (
    Case(
        "a call that registers a class fills the table",
        module(f'{TABLE}\nregister("draft", Has)\nDraft = table.get("draft", Lacks)', HAS),
        twin=module(f'{TABLE}\nregister("other", Has)\nDraft = table.get("draft", Lacks)', LACKS),
    ),
    Case(
        "a helper that sets an attribute on a class gives it that attribute",
        module(f"{HELPER}\nadd(Draft)", OWN),
        twin=module(f"{HELPER}\nadd(Lacks)", lacks("vllm.models.draft.Draft")),
    ),
    Case(
        "a helper that raises makes the module fail",
        module(
            "def need():\n    raise RuntimeError('no')\nneed()\nDraft = Has",
            fails("RuntimeError", "no"),
        ),
        twin=module("def need():\n    raise RuntimeError('no')\nDraft = Has", HAS),
    ),
    Case(
        "a helper that raises in a try is handled",
        module(
            "def need():\n    raise ImportError('no')\n"
            "try:\n    need()\n    Draft = Has\nexcept ImportError:\n    Draft = Lacks",
            LACKS,
        ),
        twin=module(
            "def need():\n    return None\n"
            "try:\n    need()\n    Draft = Has\nexcept ImportError:\n    Draft = Lacks",
            HAS,
        ),
    ),
    Case(
        "`global` in a function binds a name of the module",
        module("def choose():\n    global Draft\n    Draft = Has\nDraft = Lacks\nchoose()", HAS),
        twin=module("def choose():\n    Draft = Has\nDraft = Lacks\nchoose()", LACKS),
    ),
    Case(
        "`nonlocal` binds a name of the enclosing call",
        module(
            "def choose():\n    found = Lacks\n    def inner():\n        nonlocal found\n"
            "        found = Has\n    inner()\n    return found\nDraft = choose()",
            HAS,
        ),
        twin=module(
            "def choose():\n    found = Lacks\n    def inner():\n"
            "        found = Has\n    inner()\n    return found\nDraft = choose()",
            LACKS,
        ),
    ),
    Case(
        "a call's result rests on the globals as they were",
        module(
            "kind = 'has'\ndef pick():\n    return Has if kind == 'has' else Lacks\n"
            "Draft = pick()\nkind = 'lacks'",
            HAS,
        ),
        twin=module(
            "kind = 'has'\ndef pick():\n    return Has if kind == 'has' else Lacks\n"
            "kind = 'lacks'\nDraft = pick()",
            LACKS,
        ),
    ),
    Case(
        "a decorator of the tree that raises makes the module fail",
        module(
            "def only(cls):\n    raise ImportError('not here')\n@only\nclass Draft(Has): ...",
            fails("ImportError", "not here"),
        ),
        twin=module(
            "def only(cls):\n    return cls\n@only\nclass Draft(Has): ...",
            has("vllm.models.draft.Draft", "vllm.models.draft.Has"),
        ),
    ),
    Case(
        "__init_subclass__ can give a subclass an attribute",
        module(MAKER.format(text="cls.get_top_tokens = 1"), OWN),
        twin=module(MAKER.format(text="cls.other = 1"), lacks("vllm.models.draft.Draft")),
    ),
    Case(
        "a metaclass can give a class an attribute",
        module(META.format(text="cls.get_top_tokens = 1"), OWN),
        twin=module(META.format(text="cls.other = 1"), lacks("vllm.models.draft.Draft")),
    ),
    Case(
        "__exit__ that returns something true swallows the exception",
        module(GUARD.format(value="True"), LACKS),
        twin=module(GUARD.format(value="False"), fails("ImportError", "no")),
    ),
    Case(
        "another exception class of the same name is not taken",
        module(
            "def make():\n    class Error(Exception): ...\n    return Error\n"
            "class Error(Exception): ...\n"
            "Other = make()\ntry:\n    raise Other('x')\nexcept Error:\n    Draft = Has",
            fails("Error", "x"),
        ),
        twin=module(
            "class Error(Exception): ...\nOther = Error\ntry:\n    raise Other('x')\n"
            "except Error:\n    Draft = Has",
            HAS,
        ),
    ),
    Case(
        "names that exec may bind are undecided",
        module("exec('Draft = Has')", undecided("the class is not known: exec() may bind it")),
        twin=module("exec('Draft = Has')\nDraft = Lacks", LACKS),
    ),
    Case(
        "an assertion about the platform that stays open may fail",
        module(
            "assert current_platform.has_device_capability(80)\nDraft = Has",
            OPEN_ASSERTION,
        ),
        twin=module("assert current_platform.device_type\nDraft = Has", HAS),
    ),
)
