"""What the text of a function or class says is found once, and for that node alone."""

from __future__ import annotations

from auditor.evaluation.once import Once
from auditor.evaluation.texts import Texts
from auditor.facts import Class, FunctionFacts, ModuleFacts, Name
from auditor.syntax.function import function_facts
from auditor.syntax.module import module_facts

CLASS = b"class Draft:\n    def forward(self): pass\n"
TWICE = CLASS + b"    def forward(self, x): pass\n    forward.tag = 1\n"


def _class(source: bytes) -> Class:
    facts = module_facts(source, "vllm")
    assert isinstance(facts, ModuleFacts)
    found = facts.body[0]
    assert isinstance(found, Class)
    return found


def test_an_answer_is_found_once_for_each_node() -> None:
    asked: list[Name] = []

    def read(node: Name) -> str:
        asked.append(node)
        return node.id

    once = Once(read)
    # Two names that are equal, and two nodes all the same.
    first, second = Name("x"), Name("x")
    assert [once.of(node) for node in (first, second, first, second)] == ["x"] * 4
    assert [id(node) for node in asked] == [id(first), id(second)]


def test_a_node_keeps_its_identity_while_it_is_known() -> None:
    once: Once[Name, str] = Once(lambda node: node.id)
    assert [once.of(Name(str(n))) for n in range(100)] == [str(n) for n in range(100)]


def test_methods_are_those_of_the_body_each_as_often_as_it_is_defined() -> None:
    texts = Texts()
    assert [stmt.line for stmt in texts.methods.of(_class(CLASS))["forward"]] == [2]
    assert [stmt.line for stmt in texts.methods.of(_class(TWICE))["forward"]] == [2, 3]
    assert not texts.methods.of(_class(b"class Draft:\n    forward = None\n"))


def test_changes_and_bindings_are_those_of_the_function() -> None:
    source = b"def f(given):\n    global seen\n    seen = given.x = other = []\n"
    facts = function_facts(source.splitlines(), 1, 3, "f")
    assert isinstance(facts, FunctionFacts)
    texts = Texts()
    assert texts.changes.of(facts).shared == ("seen",)
    assert texts.changes.of(facts).heads == ("given",)
    assert texts.bindings.of(facts) == (("seen", True), ("other", True))
