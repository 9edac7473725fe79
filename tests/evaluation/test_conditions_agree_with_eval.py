"""Random conditions, by Python's own ``eval`` and by the evaluation.

Some leaves are open: where ours decides all the same, ``eval`` says so for every value of them.
"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auditor.evaluation.import_statements import Conventions, Program
from auditor.facts import FunctionFacts, ModuleFacts, Unparsed
from auditor.imports import ImportRun
from auditor.platforms import Platform
from auditor.syntax.module import module_facts
from auditor.values import Doubts, ModuleValue, PythonError, Value, Version

PREDICATES = {"is_cuda": True, "is_rocm": False, "is_cuda_alike": True}
OPEN = ("one", "other")
#: What an open leaf may be.
POSSIBLE: tuple[object, ...] = (None, 0, 1, True, False, "", "cuda", (1,))

_CONSTANTS = st.sampled_from(
    (
        "0",
        "1",
        "2",
        "-1",
        "True",
        "False",
        "None",
        '""',
        '"cuda"',
        '"cu"',
        "()",
        "(1, 2)",
        '("cu",)',
    )
)
_DECIDED = (
    st.sampled_from(
        (*(f"current_platform.{name}()" for name in PREDICATES), "current_platform.device_type")
    )
    | _CONSTANTS
)
_COMPARED = st.builds(
    "({} {} {})".format,
    _DECIDED,
    st.sampled_from(("==", "!=", "<", "<=", ">", ">=", "in", "not in")),
    _DECIDED,
)
#: An open leaf is compared by what no value of it refuses.
_CHAINED = st.builds(
    "({} {} {} {} {})".format,
    _DECIDED, st.sampled_from(("==", "!=")), _DECIDED | st.sampled_from(OPEN),
    st.sampled_from(("==", "!=")), _DECIDED,
) | st.builds("({} < {} <= {})".format, _DECIDED, _DECIDED, _DECIDED)  # fmt: skip
_ASKED = st.builds(
    "({} {})".format,
    st.sampled_from(OPEN),
    st.sampled_from(("is None", "is not None", '== "cuda"', "!= 1", 'in ("cuda", 1)', "not in ()")),
)
_LEAVES = _DECIDED | _COMPARED | _CHAINED | _ASKED | st.sampled_from(OPEN)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.builds("(not {})".format, inner)
        | st.builds("({} {} {})".format, inner, st.sampled_from(("and", "or")), inner)
        | st.builds("({} or {} and {})".format, inner, inner, inner)
        | st.builds("({} if {} else {})".format, inner, inner, inner)
        | st.builds("any([{}, {}])".format, inner, inner)
        | st.builds("all(({}, {}))".format, inner, inner)
        | st.builds("bool({})".format, inner)
    )


conditions = st.recursive(_LEAVES, _compound, max_leaves=8)


class _Platform:
    device_type = "cuda"

    def __getattr__(self, name: str) -> object:
        return lambda: PREDICATES[name]


def by_python(condition: str, values: tuple[object, ...]) -> bool | str:
    """The truth of the condition with these values of the open leaves, or what it raises."""
    names = {"current_platform": _Platform(), **dict(zip(OPEN, values, strict=True))}
    try:
        return bool(eval(condition, names))
    except (TypeError, ValueError) as error:
        return type(error).__name__


def _source(condition: str) -> str:
    return (
        "import library\n"
        "from vllm.platforms import current_platform\n"
        f"one, other = library.one, library.other\n"
        f"if {condition}:\n    answer = True\nelse:\n    answer = False\n"
    )


def _program(condition: str) -> Program:
    sources = {"vllm/__init__.py": "", "vllm/platforms.py": "", "vllm/m.py": _source(condition)}
    modules = {
        "vllm": ("vllm/__init__.py", True),
        "vllm.platforms": ("vllm/platforms.py", False),
        "vllm.m": ("vllm/m.py", False),
    }

    def facts(path: str) -> ModuleFacts | Unparsed:
        return module_facts(sources[path].encode(), "vllm")

    def function(path: str, func: object) -> FunctionFacts | Unparsed:
        raise AssertionError(f"no function is called in {path}: {func}")

    return Program(modules, frozenset(), facts, function)


_CONVENTIONS = Conventions(
    frozenset({"vllm"}), "vllm.platforms.current_platform", {}, Version(((3, 12),))
)
_PLATFORM = Platform("cuda", {"device_type": "cuda"}, PREDICATES, present={"library": "is there"})


def by_us(condition: str) -> tuple[Value | str, Doubts]:
    """``answer`` as the run has it, or what it raises; and what it may raise."""
    run = ImportRun(_program(condition), _PLATFORM, _CONVENTIONS)
    try:
        module = run.load("vllm.m")
    except PythonError as raised:
        return raised.error.type, Doubts()
    assert isinstance(module, ModuleValue)
    return module.names["answer"], module.doubts


@settings(
    max_examples=400, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(conditions)
def test_a_decided_condition_has_that_truth_for_every_value_of_the_open_leaves(
    condition: str,
) -> None:
    ours, doubts = by_us(condition)
    doubted = {doubt.error.type for doubt in doubts}
    for values in product(POSSIBLE, repeat=len(OPEN)):
        real = by_python(condition, values)
        agrees = ours == real or not isinstance(ours, bool | str)
        assert agrees or real in doubted, f"with {values}: {real}, and we say {ours}"
        if isinstance(real, str) and ours != real:
            assert real in doubted, f"with {values} it raises {real}, which we do not doubt"


def test_a_condition_without_open_leaves_is_decided() -> None:
    condition = 'current_platform.is_cuda() and "cu" in current_platform.device_type'
    assert by_us(condition)[0] is True


def test_a_condition_on_an_open_leaf_alone_stays_open() -> None:
    assert not isinstance(by_us("one")[0], bool)


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ("(one, 2) >= (13, 2)", None),
        ("(13, one) >= (13, 2)", None),
        ("(14, one) >= (13, 2)", True),
        ("[12, one] >= [13, 2]", False),
        ("(1, one) < (1,)", False),
        ("(one,) < [1]", "TypeError"),
        ("tuple(map(int, one)) > (1, 2)", None),
        ('"%d" % (one,) == "1"', None),
        ('"cu" in "%s" % (one,)', None),
        ("{one} & {1}", None),
        ("1 in {1, 2} - {one}", None),
        ("(lambda made: made.sort() or made[0] == 1)([one, 1])", None),
        ("sorted([one, 1])[0] == 1", None),
        ("max(one, 1) == 1", None),
        ("max([one, 1]) == 1", None),
        ("sum([one, 1]) == 1", None),
        ('"".join([one]) == ""', None),
        ('"{}".format(one) == ""', None),
        ("[one, 1].index(1) == 1", None),
        ("[one, 1].count(1) == 1", None),
        ("str([one]) == ''", None),
    ],
)
def test_what_python_looks_up_in_a_container_counts_as_what_is_in_it(
    condition: str, answer: object
) -> None:
    ours, _ = by_us(condition)
    assert ours == answer if answer is not None else not isinstance(ours, bool | str), ours
