"""What Transformers or a class of the tree refuses: an exception where it is sure, else a gap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from checkpoints.minitree import TREE
from trees.minivllm import source

from auditor.api import Request, Resources
from auditor.checkpoints.answer import Answers, shown
from auditor.checkpoints.command import exit_code
from auditor.checkpoints.configs import Library, Made, OutsideClass
from auditor.checkpoints.document import CheckpointDocument, Result, to_json
from auditor.checkpoints.engine import new_run
from auditor.checkpoints.library import NoLibrary
from auditor.checkpoints.reading import Given
from auditor.checkpoints.tables import Tables
from auditor.checkpoints.values import Raised, Value, library_error
from auditor.contracts.names import Names
from auditor.coverage import SourceInfo
from auditor.modules import locate_modules
from auditor.program import Files

Json = dict[str, Any]
PROPERTIES = "vllm/transformers_utils/configs/properties.py"
CONFIGS = "vllm/transformers_utils/configs/__init__.py"
OVERRIDE = "vllm/config/speculative.py"


def _tree() -> dict[str, str | bytes]:
    """The mini tree with a class that has properties, and an override that sets one."""
    made = dict(TREE)
    made[CONFIGS] = str(made[CONFIGS]).replace(
        '"StrictConfig": ', '"PropertyConfig": "vllm.transformers_utils.configs.properties",\n'
        '            "StrictConfig": ',
    )  # fmt: skip
    made["vllm/transformers_utils/config.py"] = str(
        made["vllm/transformers_utils/config.py"]
    ).replace('strict="StrictConfig"', 'strict="StrictConfig", properties="PropertyConfig"')
    made[OVERRIDE] = str(made[OVERRIDE]).replace(
        'if hf_config.model_type == "wrapper":',
        'if hf_config.model_type in ("properties", "outer"):\n'
        "                    hf_config.heads = 7\n"
        '                    hf_config.update({"n_predict": hf_config.num_heads})\n'
        '                if hf_config.model_type == "wrapper":',
    )
    made[PROPERTIES] = """
        from transformers import PretrainedConfig

        class PropertyConfig(PretrainedConfig):
            model_type = "properties"
            num_hidden_layers = 1

            def __init__(self, num_heads=5, **kwargs):
                self.num_heads = num_heads
                super().__init__(**kwargs)

            @property
            def width(self):
                return 3

            @property
            def heads(self):
                return self.num_heads

            @heads.setter
            def heads(self, value):
                self.num_heads = value
        """
    return made


class Fake(NoLibrary):
    """A Transformers that knows two model types."""

    version = "9.9"

    def __init__(self, raises: str | None = None) -> None:
        self._raises = raises

    def class_of(self, model_type: Value) -> str | None:
        return {"llama": "LlamaConfig", "outer": "OuterConfig"}.get(model_type)

    def architecture_of(self, model_type: Value) -> Value:
        return None

    def construct(self, name: str, named: Mapping[str, Value]) -> Made:
        if self._raises is not None:
            raise Raised(library_error(self._raises, "no"))
        cls = OutsideClass(
            name,
            computed=frozenset({"heads", "width"}),
            order=(name, "PretrainedConfig"),
            read_only=frozenset({"width"}),
            setters={"heads": ("num_heads",)},
        )
        return Made(cls, {"num_heads": 5, **named}, {name: cls})


def _answer(config: Json, library: Library, method: str | None = None) -> Result:
    tree = source(_tree())
    names = Names(Files(tree.tree), locate_modules(sorted(tree.tree.files()), {"vllm"})[0])
    tables = Tables(new_run(names, library), tree, Request(), Resources())
    return Answers(names, library, tables).result(Given("x", "org/x", config), method)


def _exit(result: Result) -> int:
    return exit_code(CheckpointDocument("1.0", SourceInfo("x", "1", "d"), None, (), (result,)))


def _type(result: Result) -> str | None:
    return None if result.error is None else result.error.type


def test_a_setter_of_the_tree_is_run_and_its_getter_read() -> None:
    result = _answer({"model_type": "properties", "architectures": ["X"]}, NoLibrary())
    assert (result.error, result.gaps, result.n_predict) == (None, (), 7)


def test_a_property_without_a_setter() -> None:
    config = {"model_type": "properties", "architectures": ["X"], "width": 4}
    result = _answer(config, NoLibrary())
    assert _type(result) == "AttributeError"
    assert "'width' of 'PropertyConfig' object has no setter" in str(result.error)


def test_what_a_setter_of_transformers_touches_is_not_known() -> None:
    result = _answer({"model_type": "outer", "architectures": ["X"]}, Fake())
    assert (result.architecture, result.n_predict) == ("X", None)
    assert [gap.reason for gap in result.gaps] == [
        "`n_predict`: `num_heads` is computed by Transformers where `heads` is set"
    ]
    assert _answer({"model_type": "llama", "architectures": ["X"]}, Fake()).gaps == ()


def test_a_wrong_type_is_an_error_whatever_the_release() -> None:
    config = {"model_type": "llama", "architectures": ["Llama"], "hidden_size": "x"}
    result = _answer(config, Fake("StrictDataclassFieldValidationError"), "eagle")
    assert _type(result) == "StrictDataclassFieldValidationError"
    assert result.architecture == "EagleLlama"  # of the file alone
    assert _exit(result) == 0


def test_fields_that_do_not_go_together_leave_it_open() -> None:
    config = {"model_type": "llama", "architectures": ["Llama"], "vocab_size": 9}
    result = _answer(config, Fake("StrictDataclassClassValidationError"), "eagle")
    assert (result.error, result.architecture) == (None, "EagleLlama")
    assert _exit(result) == 3


def test_an_unknown_model_type_is_open_unless_the_tree_rewrites_it() -> None:
    unknown = _answer({"model_type": "new", "architectures": ["X"]}, Fake())
    assert (unknown.error, unknown.architecture, _exit(unknown)) == (None, "X", 3)
    assert unknown.loaded is not None
    assert unknown.loaded.error is not None
    known = _answer({"model_type": "wrapper", "architectures": ["X"]}, Fake())
    assert (known.error, known.architecture, _exit(known)) == (None, "OneNMTP", 0)


@pytest.mark.parametrize("config", [{"model_type": None}, {}])
def test_no_model_type_at_all(config: Json) -> None:
    given = {"architectures": ["X"], **config}
    assert _type(_answer(given, Fake())) == "ValueError"
    open_result = _answer(given, NoLibrary())
    assert (open_result.error, _exit(open_result)) == (None, 3)


def test_a_model_type_that_cannot_be_hashed() -> None:
    assert _type(_answer({"model_type": [], "architectures": ["X"]}, Fake())) == "TypeError"


def test_layers_are_compared_with_a_default_of_the_tree() -> None:
    config = {"model_type": "properties", "architectures": ["X"], "layer_types": []}
    result = _answer(config, NoLibrary())
    assert any("does not fit" in gap.reason and gap.decides for gap in result.gaps)
    config["layer_types"] = ["full_attention"]
    assert _answer(config, NoLibrary()).gaps == ()


def test_a_quantization_that_is_no_object() -> None:
    config = {"model_type": "llama", "architectures": ["Llama"], "vocab_size": 9}
    result = _answer({**config, "quantization_config": "x"}, NoLibrary(), "eagle")
    assert result.refused is not None
    assert result.refused.message == "'str' object has no attribute 'to_dict'"


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63), 10**400, -(10**30)])
def test_numbers_of_any_size_read_as_in_the_file(number: int) -> None:
    config = {"model_type": "one", "architectures": ["X"], "num_nextn_predict_layers": abs(number)}
    result = _answer(config, NoLibrary())
    assert str(result.n_predict) == str(abs(number))
    made = CheckpointDocument("1.0", SourceInfo("x", "1", "d"), None, (), (result,))
    assert msgspec.json.decode(to_json(made))["results"]
    assert str(shown(number)) == str(number)
