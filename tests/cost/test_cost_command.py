"""``audit cost`` as one types it: what it prints, in which form, and how it ends."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from auditor.cost.document import CostDocument, json_schema
from auditor.main import command, run

Capture = pytest.CaptureFixture[str]

HEADER = "vocab_size,tp,batch,default_us,reduction_us"


class Cost:
    """Runs the command and reads what it says."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def run(self, *args: str) -> tuple[int, str, str]:
        code = run(command, ["cost", *args], "audit")
        said = self._capture.readouterr()
        return code, said.out, said.err

    def text(self, *args: str) -> str:
        code, out, err = self.run(*args)
        assert (code, err) == (0, "")
        return out

    def document(self, *args: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.text(*args, "--format", "json"))
        jsonschema.Draft202012Validator(json_schema()).validate(document)
        return document


@pytest.fixture
def cost(capsys: Capture) -> Cost:
    return Cost(capsys)


@pytest.mark.parametrize(
    ("args", "default", "reduction"),
    [
        (("--vocab-size", "129280", "--tp", "2", "--batch", "512"), "126.2 MiB", "8.0 KiB"),
        (("--vocab-size", "154880", "--tp", "2", "--batch", "512"), "151.2 MiB", "8.0 KiB"),
        (("--vocab-size", "154880", "--tp", "8", "--batch", "1024"), "302.5 MiB", "64.0 KiB"),
    ],
)
def test_the_bytes_of_known_models(
    args: tuple[str, ...], default: str, reduction: str, cost: Cost
) -> None:
    text = cost.text(*args)
    assert default in text
    assert reduction in text


def test_the_break_even_of_what_is_published(cost: Cost) -> None:
    document = cost.document("--vocab-size", "129280,154880", "--tp", "2,4", "--batch", "64")
    ranges = {(one["vocab_size"], one["tp"]): one for one in document["break_even"]}
    assert {key: (one["low"], one["high"]) for key, one in ranges.items()} == {
        (129280, 2): (16, 32),
        (129280, 4): (128, 256),
        (154880, 2): (16, 32),
        (154880, 4): (128, 256),
    }
    assert ranges[154880, 2]["kind"] == "points"
    assert ranges[154880, 2]["batch"] == pytest.approx(16 + 16 * 6.2 / 68.2)
    assert ranges[154880, 4]["batch"] is None
    assert document["measurements"][0]["link"].startswith("https://github.com/vllm-project/")


def test_the_advice_is_one_sentence(cost: Cost) -> None:
    (even,) = cost.document("--vocab-size", "154880", "--tp", "2")["break_even"]
    assert even["advice"] == (
        "Below a draft batch of about 17, interpolated between 16 and 32, this flag costs about "
        "6 to 32 µs a step, above it saves."
    )


def test_measured_interpolated_and_outside_are_told_apart(cost: Cost) -> None:
    document = cost.document("--vocab-size", "154880", "--tp", "2", "--batch", "16,24,2048")
    measured, between, outside = document["rows"]
    assert (measured["step"]["kind"], measured["effect"]) == ("measured", "costs")
    assert measured["step"]["saved_us"] == pytest.approx(-6.2)
    assert (between["step"]["kind"], between["step"]["low"], between["step"]["high"]) == (
        "interpolated",
        16,
        32,
    )
    assert (outside["step"], outside["effect"]) == (None, "unknown")
    assert outside["reason"] == "outside the measured batches, 1 to 1024"
    text = " ".join(
        cost.text("--vocab-size", "154880", "--tp", "2", "--batch", "16,24,2048").split()
    )
    assert "16 .. 32" in text
    assert "interpolated, on the line between these two measured batches" in text
    assert "no time for batch 2048: outside the measured batches, 1 to 1024" in text


def test_what_nobody_measured_has_bytes_and_no_number(cost: Cost) -> None:
    document = cost.document("--vocab-size", "154880", "--tp", "8", "--batch", "512")
    assert document["rows"][0]["step"] is None
    assert document["rows"][0]["default_bytes"] == 512 * 154880 * 2
    assert document["rows"][0]["reduction_bytes"] == 512 * 2 * 8 * 4
    assert document["break_even"][0]["kind"] == "none"
    assert document["measurements"] == []


def test_another_dtype_is_another_measurement(cost: Cost) -> None:
    document = cost.document("--vocab-size", "154880", "--tp", "2", "--dtype", "fp32,bf16")
    assert {row["dtype"]: row["step"] is None for row in document["rows"]} == {
        "float32": True,
        "bfloat16": False,
    }


def test_ones_own_measurements_take_the_place_of_the_published(cost: Cost, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEADER},hardware\n154880,8,1,10,40,H20\n154880,8,101,210,40,H20\n")
    own = ("--vocab-size", "154880", "--tp", "2,8", "--batch", "1,51", "--measured", str(path))
    document = cost.document(*own)
    assert [one["name"] for one in document["measurements"]] == ["mine.csv"]
    rows = {(row["tp"], row["batch"]): row["step"] for row in document["rows"]}
    assert rows[2, 1] is None
    assert rows[8, 51]["saved_us"] == pytest.approx(70.0)
    assert document["break_even"][1]["batch"] == pytest.approx(16.0)
    assert str(tmp_path) not in json.dumps(document)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (("9,2,1,5,2", "9,2,4,6,2"), "At every measured draft batch, 1 to 4, this flag saves."),
        (("9,2,1,2,5", "9,2,4,2,9"), "this flag costs about 3 to 7 µs a step: leave it off."),
        (("9,2,1,5,2", "9,2,4,2,6"), "there is no single break-even."),
        (
            ("9,2,1,1,3", "9,2,2,3,1", "9,2,4,1,3", "9,2,8,3,1"),
            "Below a draft batch of 1 to 8, where both happen, this flag costs about 2 µs a step",
        ),
    ],
)
def test_the_advice_where_there_is_no_plain_break_even(
    lines: tuple[str, ...], says: str, cost: Cost, tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("\n".join((HEADER, *lines)))
    args = ("--vocab-size", "9", "--tp", "2", "--measured", str(path))
    assert says in cost.document(*args)["break_even"][0]["advice"]


def test_a_configuration_gives_sizes_and_an_option_overrides_them(
    cost: Cost, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"text_config": {"vocab_size": 64}, "torch_dtype": "float16"}))
    document = cost.document(str(path), "--tp", "2", "--batch", "1")
    assert (document["rows"][0]["vocab_size"], document["rows"][0]["dtype"]) == (64, "float16")
    assert document["config"] == {
        "name": "config.json",
        "vocab_size_from": "text_config.vocab_size",
        "dtype_from": "torch_dtype",
    }
    document = cost.document(str(path), "--vocab-size", "128", "--dtype", "fp32")
    assert {(row["vocab_size"], row["dtype"]) for row in document["rows"]} == {(128, "float32")}
    assert document["config"]["vocab_size_from"] is None
    assert document["config"]["dtype_from"] is None


def test_an_option_makes_up_for_what_is_odd_in_a_configuration(cost: Cost, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"vocab_size": "many", "dtype": "float8_e4m3fn"}')
    assert cost.run(str(path), "--vocab-size", "64")[0] == 2
    assert cost.run(str(path), "--dtype", "bf16")[0] == 2
    document = cost.document(str(path), "--vocab-size", "64", "--dtype", "bf16")
    assert document["notes"] == []


@pytest.mark.parametrize(
    ("config", "note"),
    [
        (
            {"draft_vocab_size": 64, "vocab_size": 128, "dtype": "bf16"},
            "spreads the gathered logits",
        ),
        ({"vocab_size": 64, "torch_dtype": "float32"}, "makes bfloat16 of it"),
        ({"vocab_size": 64}, "names no dtype: bfloat16 is taken"),
        ({"vocab_size": 65, "dtype": "bfloat16"}, "A head of 65 tokens has 128 rows"),
        ({"vocab_size": 2**24 + 64, "dtype": "bfloat16"}, "not every index is exact"),
    ],
)
def test_what_a_reader_has_to_know_is_a_note(
    config: dict[str, object], note: str, cost: Cost, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    (said,) = cost.document(str(path), "--tp", "2")["notes"]
    assert note in said
    assert "note: " in cost.text(str(path), "--tp", "2", "--batch", "1")


def test_nothing_is_noted_where_nothing_is_odd(cost: Cost) -> None:
    assert cost.document("--vocab-size", "129280")["notes"] == []


def test_one_rank_has_nothing_to_gather(cost: Cost) -> None:
    document = cost.document("--vocab-size", "129280", "--tp", "1")
    assert "nothing is gathered either way" in document["break_even"][0]["advice"]


def test_without_options_the_usual_ranks_and_batches_are_shown(cost: Cost) -> None:
    rows = cost.document("--vocab-size", "129280")["rows"]
    assert sorted({row["tp"] for row in rows}) == [2, 4, 8]
    assert sorted({row["batch"] for row in rows}) == [2**n for n in range(11)]


def test_the_document_reads_back_as_it_was(cost: Cost) -> None:
    text = cost.text("--vocab-size", "154880", "--format", "json")
    document = msgspec.json.decode(text, type=CostDocument)
    assert msgspec.json.encode(document) == msgspec.json.encode(json.loads(text))


def test_the_schema_is_printed(capsys: Capture) -> None:
    assert run(command, ["schema", "cost"], "audit") == 0
    assert json.loads(capsys.readouterr().out) == json_schema()


def test_csv_has_every_row_in_full(cost: Cost) -> None:
    text = cost.text("--vocab-size", "154880", "--tp", "2,8", "--batch", "512", "--format", "csv")
    one, two = csv.DictReader(io.StringIO(text))
    assert (one["default_bytes"], one["reduction_us"]) == ("158597120", "537.300")
    assert (two["kind"], two["saved_us"]) == ("", "")


def test_markdown_has_the_table_the_advice_and_the_source(cost: Cost) -> None:
    text = cost.text("--vocab-size", "154880", "--tp", "2", "--batch", "512", "-f", "markdown")
    assert (
        "| 154880 | 2 | bfloat16 | 512 | 151.2 MiB | 8.0 KiB | +1632.5 µs, +75.2 % | measured |"
        in text
    )
    assert "\n* vocab 154880, TP 2, bfloat16: Below a draft batch" in text
    assert "<https://github.com/vllm-project/vllm/pull/56995>" in text


# ---- the plot -------------------------------------------------------------------------------


def _bars(text: str, sign: str) -> list[int]:
    return [line.count(sign) for line in text.splitlines() if f"  {sign}" in line]


def test_a_range_is_drawn_and_longer_bars_are_more_bytes(cost: Cost) -> None:
    text = cost.text("--vocab-size", "129280", "--tp", "2", "--batch", "1-1024")
    default, flag = _bars(text, "#"), _bars(text, "=")
    assert len(default) == len(flag) == 11
    assert default == sorted(default)
    assert flag == sorted(flag)
    assert min(default) > max(flag)


def test_a_single_batch_is_not_drawn(cost: Cost) -> None:
    assert "#" not in cost.text("--vocab-size", "129280", "--batch", "512")


def test_the_time_plot_shows_on_which_side_the_flag_is(cost: Cost) -> None:
    text = cost.text("--vocab-size", "154880", "--tp", "2", "--batch", "1,16,24,1024")
    lines = [line for line in text.splitlines() if "|" in line]
    assert ["-|" in line for line in lines] == [True, True, False, False]
    assert ["|+" in line for line in lines] == [False, False, True, True]
    assert [" ~" in line for line in lines] == [False, False, True, False]


def test_a_long_range_is_thinned_and_keeps_its_ends(cost: Cost) -> None:
    batches = ",".join(str(n) for n in range(1, 200))
    text = cost.text("--vocab-size", "129280", "--tp", "2", "--batch", batches)
    bars = [line for line in text.splitlines() if "default   #" in line]
    assert len(bars) == 24
    assert [bars[0].split()[0], bars[-1].split()[0]] == ["1", "199"]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_wider_than_asked_and_nothing_is_cut(width: int, cost: Cost) -> None:
    sizes = ("--vocab-size", "154880,129280,2147483584", "--batch", "1-16777216")
    text = cost.text(*sizes, "--width", str(width))
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "+1632.5 µs" in text


def test_no_colour_where_none_is_wanted(cost: Cost) -> None:
    assert "\x1b" not in cost.text("--vocab-size", "154880")


# ---- wrong usage ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "give a checkpoint's config.json, or --vocab-size"),
        (("--vocab-size", "0"), "--vocab-size: 0 is no vocabulary size"),
        (("--vocab-size", "-5"), "--vocab-size: '-5' is no vocabulary size"),
        (("--vocab-size", "many"), "--vocab-size: 'many' is no vocabulary size"),
        (("--vocab-size", "9" * 6000), "it goes from 1 to"),
        (("--vocab-size", "129280", "--tp", "3"), "--tp: 3 ranks cannot share a head of 129280"),
        (("--vocab-size", "129280", "--tp", "0"), "--tp: 0 is no number of ranks"),
        (("--vocab-size", "129280", "--batch", "1.5"), "--batch: '1.5' is no draft batch"),
        (("--vocab-size", "129280", "--batch", "64-2"), "the range '64-2' ends before it begins"),
        (("--vocab-size", "129280", "--batch", ""), "--batch: '' is no draft batch"),
        (("--vocab-size", "129280", "--dtype", "bfloat"), "--dtype: no dtype of logits is called"),
        (("--vocab-size", "129280", "--dtype", ""), "--dtype: no dtype"),
        (("--vocab-size", "129280", "--measured", "no.csv"), "no.csv: cannot be read"),
        (("--vocab-size", "129280", "--measured", ""), "--measured: names no file"),
        (("",), "CONFIG: names no file"),
        (("no.json",), "no.json: cannot be read"),
        (("\0",), "cannot be read"),
        (
            (
                "--vocab-size",
                "64-131072,100-1000000",
                "--batch",
                "1-16777216,3-9999999",
                "--tp",
                "1-64",
                "--dtype",
                "bf16,fp16,fp32",
            ),
            "no more than 20000",
        ),
    ],
)
def test_wrong_usage_ends_with_2_and_one_line(args: tuple[str, ...], says: str, cost: Cost) -> None:
    code, out, err = cost.run(*args)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_a_configuration_without_a_vocabulary_is_an_error(cost: Cost, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "x"}')
    code, out, err = cost.run(str(path))
    assert (code, out) == (2, "")
    assert "names no vocabulary size. Give --vocab-size." in err
    assert cost.run(str(path), "--vocab-size", "64")[0] == 0


def test_an_option_of_the_group_that_means_nothing_here_is_refused(capsys: Capture) -> None:
    assert run(command, ["--platform", "rocm", "cost", "--vocab-size", "64"], "audit") == 2
    assert "--platform has no meaning for cost" in capsys.readouterr().err


def test_a_terminal_without_a_micro_sign_gets_a_letter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with open(tmp_path / "out", "w", encoding="ascii") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        args = ["cost", "--vocab-size", "154880", "--tp", "2", "--batch", "16"]
        assert run(command, args, "audit") == 0
    assert " 290.1 us " in (tmp_path / "out").read_text()
