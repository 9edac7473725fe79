"""What ``audit cost`` does: what was typed to a question, and the document to a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from auditor.errors import UsageError
from auditor.options import Options
from auditor.output import deliver

#: What is asked about where nothing is said: the usual numbers of ranks, the usual batches.
_TPS, _BATCHES, _DTYPE = ("2,4,8",), ("1-1024",), "bfloat16"

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of the command, as they were typed."""

    config: str | None
    vocab_size: tuple[str, ...]
    tp: tuple[str, ...]
    batch: tuple[str, ...]
    dtype: tuple[str, ...]
    measured: str | None


def run(asked: Asked, options: Options) -> int:
    """Print the report; the exit code is 0.

    Raises:
        UsageError: sizes that are missing or cannot be, or a file that cannot be read.
    """
    from auditor.cost.answer import Question, answer
    from auditor.cost.config import read_sizes
    from auditor.cost.grid import numbers
    from auditor.cost.measurements import published
    from auditor.cost.own import read_measured

    for where, name in (("CONFIG", asked.config), ("--measured", asked.measured)):
        if name == "":
            raise UsageError("names no file", where=where)
    vocab_sizes = _of("--vocab-size", lambda: numbers(asked.vocab_size, "vocabulary size"))
    dtypes = _of("--dtype", lambda: _dtypes(asked.dtype))
    sizes = None
    if asked.config is not None:
        sizes = read_sizes(asked.config, vocabulary=not vocab_sizes, dtype=not dtypes)
    if not vocab_sizes:
        if sizes is None or sizes.vocab_size is None:
            raise _no_vocabulary(asked.config)
        vocab_sizes = (sizes.vocab_size,)
    said = sizes.dtype if sizes else None
    question = Question(
        vocab_sizes=vocab_sizes,
        tps=_of("--tp", lambda: numbers(asked.tp or _TPS, "number of ranks")),
        dtypes=dtypes or (said or _DTYPE,),
        batches=_of("--batch", lambda: numbers(asked.batch or _BATCHES, "draft batch")),
        config=sizes,
        dtype_missing=not dtypes and said is None,
    )
    measured = published() if asked.measured is None else (read_measured(asked.measured),)
    _print(answer(question, measured), options)
    return 0


def _of(option: str, parse: Callable[[], _Value]) -> _Value:
    """What an option says; an error of it names the option."""
    try:
        return parse()
    except UsageError as error:
        raise UsageError(error.what, where=option, next_step=error.next_step) from error


def _dtypes(values: tuple[str, ...]) -> tuple[str, ...]:
    from auditor.cost.sizes import dtype_named

    names = [name for value in values for name in value.split(",")]
    return tuple(dict.fromkeys(dtype_named(name) for name in names))


def _no_vocabulary(config: str | None) -> UsageError:
    if config is None:
        what = "give a checkpoint's config.json, or --vocab-size"
        return UsageError(what, next_step="For DeepSeek-V3: --vocab-size 129280.")
    return UsageError("names no vocabulary size", where=config, next_step="Give --vocab-size.")


def _print(document: object, options: Options) -> None:
    from auditor.cost import flat, report
    from auditor.cost.document import CostDocument

    assert isinstance(document, CostDocument)
    match options.format:
        case "json":
            text = report.render_json(document)
        case "csv":
            text = flat.render_csv(document)
        case "markdown":
            text = flat.render_markdown(document)
        case _:
            width, color = options.columns, options.in_color
            text = report.render(document, width=width, color=color, plots=True)
    deliver(text, options)
