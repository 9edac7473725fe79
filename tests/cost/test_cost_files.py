"""Files of the user's: a checkpoint's configuration, and measurements."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from auditor.cost import config as module
from auditor.cost.config import Sizes, read_sizes
from auditor.cost.measurements import Point
from auditor.cost.own import read_measured
from auditor.errors import UsageError

HEADER = "vocab_size,tp,batch,default_us,reduction_us"


def sizes(tmp_path: Path, **config: object) -> Sizes:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    return read_sizes(str(path))


def test_the_plain_keys(tmp_path: Path) -> None:
    found = sizes(tmp_path, vocab_size=129280, torch_dtype="bfloat16")
    assert (found.vocab_size, found.vocab_key) == (129280, "vocab_size")
    assert (found.dtype, found.dtype_key) == ("bfloat16", "torch_dtype")
    assert found.downcast is None


@pytest.mark.parametrize(
    ("nested", "key"),
    [
        ({"text_config": {"vocab_size": 7}}, "text_config.vocab_size"),
        (
            {"thinker_config": {"text_config": {"vocab_size": 7}}},
            "thinker_config.text_config.vocab_size",
        ),
        (
            {"text_config": {"vocab_size": 7}, "llm_config": {"vocab_size": 7}},
            "text_config.vocab_size",
        ),
    ],
)
def test_a_nested_language_model_says_it(
    nested: dict[str, object], key: str, tmp_path: Path
) -> None:
    found = sizes(tmp_path, **nested)
    assert (found.vocab_size, found.vocab_key) == (7, key)


def test_two_nested_sizes_that_differ_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"text_config.vocab_size is 7, llm_config.vocab_size is 8"
    ):
        sizes(tmp_path, text_config={"vocab_size": 7}, llm_config={"vocab_size": 8})


def test_a_head_with_its_own_vocabulary_counts_before_the_targets(tmp_path: Path) -> None:
    found = sizes(tmp_path, draft_vocab_size=32000, vocab_size=128256)
    assert (found.vocab_size, found.vocab_key) == (32000, "draft_vocab_size")
    assert found.target_vocab_size == 128256
    found = sizes(tmp_path, draft_vocab_size=None, vocab_size=128256)
    assert (found.vocab_size, found.target_vocab_size) == (128256, None)
    speculators = {"draft_vocab_size": 32000, "transformer_layer_config": {"vocab_size": 128256}}
    assert sizes(tmp_path, **speculators).target_vocab_size == 128256


@pytest.mark.parametrize(
    ("given", "dtype", "key"),
    [
        ({"dtype": "float16", "torch_dtype": "bfloat16"}, "float16", "dtype"),
        ({"head_dtype": "float16", "dtype": "bfloat16"}, "float16", "head_dtype"),
        ({"head_dtype": "model", "dtype": "float16"}, "float16", "dtype"),
        ({"text_config": {"torch_dtype": "torch.float16"}}, "float16", "text_config.torch_dtype"),
        ({"torch_dtype": None}, None, None),
    ],
)
def test_which_key_gives_the_dtype(
    given: dict[str, object], dtype: str | None, key: str | None, tmp_path: Path
) -> None:
    found = sizes(tmp_path, vocab_size=7, **given)
    assert (found.dtype, found.dtype_key) == (dtype, key)


def test_a_checkpoint_in_float32_is_made_smaller_by_the_engine(tmp_path: Path) -> None:
    found = sizes(tmp_path, vocab_size=7, torch_dtype="float32")
    assert (found.dtype, found.downcast) == ("bfloat16", "float32")


def test_a_head_that_is_asked_to_be_float32_stays_so(tmp_path: Path) -> None:
    found = sizes(tmp_path, vocab_size=7, torch_dtype="bfloat16", head_dtype="float32")
    assert (found.dtype, found.downcast) == ("float32", None)


def test_a_folder_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes(tmp_path, vocab_size=7)
    assert read_sizes(str(tmp_path)).vocab_size == 7
    stdin = SimpleNamespace(buffer=io.BytesIO(b'{"vocab_size": 9}'))
    monkeypatch.setattr("sys.stdin", stdin)
    assert read_sizes("-").vocab_size == 9


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", ":1: not JSON"),
        (b'{\n "a": x}', ":2: not JSON"),
        (b"[]", "not a JSON object"),
        (b"7", "not a JSON object"),
        (b"\xff\xfe\x00", "not JSON that can be read"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"vocab_size": "129280"}', 'config.json: vocab_size: "129280" is no vocabulary size'),
        (b'{"vocab_size": 0}', "0 is no vocabulary size"),
        (b'{"vocab_size": true}', "true is no vocabulary size"),
        (b'{"vocab_size": 1.5}', "1.5 is no vocabulary size"),
        (b'{"vocab_size": 99999999999}', "is no vocabulary size"),
        (b'{"draft_vocab_size": []}', "draft_vocab_size: [] is no vocabulary size"),
        (b'{"text_config": {"vocab_size": -1}}', "text_config.vocab_size: -1 is no"),
        (b'{"vocab_size": 7, "torch_dtype": 5}', "torch_dtype: 5 is no dtype"),
        (b'{"vocab_size": 7, "dtype": "bfloat61"}', "Did you mean bfloat16"),
    ],
)
def test_a_configuration_that_cannot_be_is_an_error_by_line_or_key(
    text: bytes, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(text)
    with pytest.raises(UsageError) as caught:
        read_sizes(str(path))
    assert says in caught.value.message
    assert "config.json" in caught.value.where


def test_a_file_that_is_not_there_and_one_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_sizes(str(tmp_path / "missing.json"))
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_sizes(str(tmp_path))
    monkeypatch.setattr(module, "_MOST_BYTES", 10)
    with pytest.raises(UsageError, match="no configuration"):
        sizes(tmp_path, vocab_size=7, a="long enough")


# ---- measurements ---------------------------------------------------------------------------


def measured(tmp_path: Path, text: str, name: str = "mine.csv") -> object:
    path = tmp_path / name
    path.write_text(text)
    return read_measured(str(path))


def test_csv_and_toml_say_the_same(tmp_path: Path) -> None:
    table = f"{HEADER},dtype\n100,2,8,20,30,bf16\n\n100,2,1,10.5,20,\n100, 4, 1, 7, 8, half\n"
    toml = """
[[series]]
vocab_size = 100
tp = 2
points = [
    { batch = 1, default_us = 10.5, reduction_us = 20 },
    { batch = 8, default_us = 20, reduction_us = 30 },
]
[[series]]
vocab_size = 100
tp = 4
dtype = "float16"
points = [{ batch = 1, default_us = 7, reduction_us = 8 }]
"""
    path = tmp_path / "one.csv"
    path.write_text(table.replace("bf16", ""))
    other = tmp_path / "two.TOML"
    other.write_text(toml)
    one, two = read_measured(str(path)), read_measured(str(other))
    assert one.series == two.series
    assert (one.name, two.name) == ("one.csv", "two.TOML")
    assert one.series[0].points == (Point(1, 10.5, 20.0), Point(8, 20.0, 30.0))


def test_the_hardware_of_a_csv_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"hardware,{HEADER}\nH20,9,2,1,1,1\nH20,9,2,2,1,1\nL4,9,2,3,1,1\n")
    assert read_measured(str(path)).hardware == "H20, L4"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "mine.csv: no line of figures"),
        (f"{HEADER}\n", "mine.csv: no line of figures"),
        ("vocab_size,tp\n", "mine.csv:1: the header has no batch, default_us, reduction_us"),
        (f"{HEADER},speed\n", "mine.csv:1: no column is called 'speed'"),
        (f"{HEADER},tp\n", "mine.csv:1: column 'tp' is there twice"),
        (f"{HEADER}\n9,2,1,1\n", "mine.csv:2: 4 fields, not 5"),
        (f"\n{HEADER}\n9,2,x,1,1\n", "mine.csv:3: Expected `int`"),
        (f"{HEADER}\n9,2,1,,1\n", "mine.csv:2: Expected `float`"),
        (f"{HEADER}\n9,2,0,1,1\n", "mine.csv:2: series[0].points[0].batch: 0 is no draft batch"),
        (f"{HEADER}\n9,2,1,-3,1\n", "default_us: -3.0 is no time"),
        (f"{HEADER}\n9,2,1,nan,1\n", "is no time"),
        (f"{HEADER}\n9,2,1,1,1\n9,2,1,2,2\n", "mine.csv:3: batch 1 is there twice for vocab 9"),
        (f"{HEADER},dtype\n9,2,1,1,1,int8\n", "mine.csv:2: series[0].dtype: no dtype"),
        (f"{HEADER}\n{'9' * 200_000},2,1,1,1\n", "mine.csv:2: "),
    ],
)
def test_a_table_that_cannot_be_is_an_error_by_line(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        measured(tmp_path, text)
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("series = [", "not TOML"),
        ("hardware = 'x'\n", "missing required field `series`"),
        ("series = []\n", "no series"),
        ("speed = 1\nseries = []\n", "unknown field `speed`"),
        ("[[series]]\nvocab_size = 9\ntp = 'two'\n", "$.series[0].tp"),
        ("[[series]]\nvocab_size = 9\ntp = 2\n", "series[0]: neither points"),
        (
            "[[series]]\nvocab_size = 9\ntp = 2\npoints = [{batch = 1, default_us = 1}]\n",
            "missing required field `reduction_us` - at `$.series[0].points[0]`",
        ),
    ],
)
def test_a_toml_file_that_cannot_be_is_an_error_by_key(
    text: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        measured(tmp_path, text, "mine.toml")
    assert says in caught.value.message
    assert "mine.toml" in caught.value.where


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither"):
        measured(tmp_path, "x", "mine.txt")
    path = tmp_path / "bad.csv"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_measured(str(path))
    with pytest.raises(UsageError, match="cannot be read"):
        read_measured(str(tmp_path / "missing.csv"))
