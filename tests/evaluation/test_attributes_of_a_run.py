"""A run has its attributes in one place from the start, and few of them.

CPython finds the attributes of an object by position while all objects of a class set the same
ones, and fewer than thirty. Where that ends, every look at an attribute of a run is a search.
"""

from __future__ import annotations

from auditor.evaluation.import_statements import Conventions, Program
from auditor.facts import Func, FunctionFacts, ModuleFacts, Unparsed
from auditor.imports import ImportRun
from auditor.platforms import Platform
from auditor.syntax.function import function_facts
from auditor.syntax.module import module_facts
from auditor.values import ModuleValue, Version

#: A call that is put off, one that is run, a branch that is open, and a name deferred to later.
SOURCE = b"""
import os
from vllm import other
def quiet(): return 1
def loud(given):
    if not given:
        raise ValueError(given)
value = quiet()
loud(value)
if os.environ.get("SET"):
    value = 2
"""


def _facts(path: str) -> ModuleFacts | Unparsed:
    return module_facts(SOURCE if path == "vllm/__init__.py" else b"", "vllm")


def _function(path: str, func: Func) -> FunctionFacts | Unparsed:
    return function_facts(SOURCE.splitlines(), func.start, func.end, func.name)


def test_running_sets_no_attribute_that_was_not_there() -> None:
    modules = {"vllm": ("vllm/__init__.py", True), "vllm.other": ("vllm/other.py", False)}
    conventions = Conventions(frozenset({"vllm"}), "vllm.platforms.p", {}, Version(((3, 12),)))
    program = Program(modules, frozenset(), _facts, _function)
    run = ImportRun(program, Platform("cuda", {}, {}), conventions)
    before = set(vars(run))
    module = run.load("vllm")
    assert isinstance(module, ModuleValue)
    assert module.state == "loaded"
    assert len(run.open_conditions) == 1
    assert set(vars(run)) == before
    assert len(before) < 30
