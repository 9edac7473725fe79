"""What of a source can mean a name of another module, and what cannot."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import auditor
from auditor.facts import ModuleFacts
from auditor.syntax.module import module_facts
from auditor.words import mentioned, reached, reached_by_nodes, texts_of, told

REACHING = [
    "tools.word",
    "tools . word",
    "(tools\n .word)",
    "(tools.\n word)",
    "(tools.  # a remark: (this)\n word)",
    "(tools.  # a remark.\n # another.\n\n word)",
    "(f('#').\n word)",
    "tools.\\\n word",
    "from tools import word",
    "from .tools import word",
    "from . import (\n    other,  # import: of this (here)\n    word,\n)",
    "from tools import other, word as it",
    "from tools import other, \\\n    word",
    "from word2 import a; from tools import word",
    "from tools import(word)",
    "from .import word",
    "from .word import other",
    "import tools.word",
    "import tools.word as it",
    "match x:\n    case Tools(word=1):\n        pass",
    "from os import a; from tools import word",
    '("""a\n# b""".\n word)',
    "getattr(tools, 'word')",
    'getattr(tools, "word")',
    "__all__ = ['word']",
    "f(tools, 'the word')",
    "tools.\u1d42ord.word",
    "tools.\uff57ord",
    # Quotes that another spelling would end texts with.
    'a = \'\uff07\uff07\'\ntools. word\nc = \'\'\' + """\'\'\'\nd = """# """',
    "from tools \\\n    import word",
    "from . \\\n    import word",
    "from tools import gr\u00f6\u00dfe, word",
    "(tools.# a remark\r word)",
    "from os import a\rfrom tools import word",
    "f(('a\\\n# b') . # a remark\nword)",
    "'''a\n# b'''; from tools import (  # of \"this\"\n    word)",
    'from tools import (  # import of "this"\n    word)',
    "match x:\n    case Tools(word  # a remark\n    =1):\n        pass",
]
NOT_REACHING = [
    "word",
    "word.part",
    "f(word, other)",
    "f(other, word)",
    "[other, word]",
    "def f(a, word): return word",
    "f(word=1)",
    "for word in words: pass",
    "import word",
    "import word.part",
    "import word as it",
    "from word import part",
    "from os import word",
    "from os import (\n    path,\n    word,\n)",
    "from os.path import join, word",
    "x = 3  # the end of it.\nword.part",
    "# one.\n# two.\nword(1)",
    "'''Of the word, and more.'''",
    "'a word of it'",
    "passwords.words",
    "import os\nf(word, other)",
    "password",
    "global word",
    "'word.part'",
    "f(a, word=1)\nx = 'in case of it'",
]


@pytest.mark.parametrize("source", REACHING)
def test_what_may_mean_a_name_of_another_module(source: str) -> None:
    text = source.encode()
    assert reached(["word"], text, reached_by_nodes)
    assert reached(["word"], text, None)
    facts = module_facts(text, "tree")
    if isinstance(facts, ModuleFacts) and "case" not in source:
        said = list(texts_of(facts, elsewhere=True))
        assert any(reached(["word"], one, None) for one in said), said


@pytest.mark.parametrize("source", NOT_REACHING)
def test_what_means_a_name_where_it_stands(source: str) -> None:
    ast.parse(source)
    assert not reached(["word"], source.encode(), reached_by_nodes)


@pytest.mark.parametrize(
    "source",
    ["word", "word.part", "x = word + 1", "import word", "from os import word", "if word: x = 1"],
)
def test_facts_say_a_name_where_it_stands(source: str) -> None:
    facts = module_facts(source.encode(), "tree")
    assert mentioned(["word"], texts_of(facts))
    assert not any(reached(["word"], one, None) for one in texts_of(facts, elsewhere=True))


@pytest.mark.parametrize("text", ["word", "a word.", "a.word.part", "a:word.part", "word, a"])
def test_a_text_tells_of_a_name(text: str) -> None:
    assert told(["other", "word"], [b"nothing", text.encode()])


@pytest.mark.parametrize("text", ["words", "word.part", "not word.part(word.more)", "pass_word"])
def test_a_text_tells_of_what_a_name_has(text: str) -> None:
    assert not told(["word", "none"], [text.encode()])


def test_a_part_of_a_file_is_not_parsed() -> None:
    listed = b"import a\nf(word)\n"
    assert reached(["word"], listed, None)
    assert not reached(["word"], listed, reached_by_nodes)
    assert reached(["word"], b"import a\nf(word) (\n", reached_by_nodes)


def test_no_attribute_or_import_of_a_real_file_is_missed() -> None:
    """Every name that the syntax of this project's files has where another module may be meant."""
    missed = []
    for path in sorted(Path(auditor.__file__).parent.rglob("*.py")):
        text = path.read_bytes()
        names = set(re.findall(r"\b[A-Za-z_]\w*", text.decode()))
        for name in sorted(_named_elsewhere(ast.parse(text), names)):
            if not reached([name], text, None):
                missed.append((path.name, name))
    assert missed == []


def _named_elsewhere(tree: ast.AST, names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("auditor"):
            found.update(alias.name for alias in node.names)
    assert found <= set(names)
    return found
