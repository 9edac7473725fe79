"""``--measured FILE``: one's own step times, in CSV or TOML.

CSV has a header line and one point a line: ``vocab_size,tp,batch,default_us,reduction_us``, with
``dtype`` and ``hardware`` as further columns if one likes. TOML is what ``rules/measurements``
holds; only ``series`` is needed.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from auditor.cost.measurements import Measurement, Point, Series, describe, in_order
from auditor.errors import UsageError

_MOST_BYTES = 16 * 2**20
_NEEDED = ("vocab_size", "tp", "batch", "default_us", "reduction_us")
_OPTIONAL = ("dtype", "hardware")


class _Line(msgspec.Struct, frozen=True):
    """One line of a CSV file."""

    vocab_size: int
    tp: int
    batch: int
    default_us: float
    reduction_us: float
    dtype: str = "bfloat16"


def read_measured(given: str) -> Measurement:
    """Read the file; its name is that of the measurement.

    Raises:
        UsageError: it cannot be read, or is not of that form; the message names line or key.
    """
    text = _text(given)
    name = Path(given).name
    if Path(given).suffix.lower() == ".toml":
        return _checked(_toml(text, given, name), given)
    if Path(given).suffix.lower() == ".csv":
        return _checked(_csv(text, given, name), given)
    raise UsageError("neither .csv nor .toml", where=given)


def _text(given: str) -> str:
    try:
        with open(given, "rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8", where=given) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot be read: {reason}", where=given) from error
    if len(data) > _MOST_BYTES:
        raise UsageError(f"more than {_MOST_BYTES // 2**20} MiB", where=given)
    return text


def _checked(measurement: Measurement, given: str) -> Measurement:
    try:
        return in_order(measurement)
    except UsageError as error:
        raise UsageError(error.what, where=given, next_step=error.next_step) from error


def _toml(text: str, given: str, name: str) -> Measurement:
    try:
        return msgspec.convert({"name": name, **tomllib.loads(text)}, Measurement)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"not TOML: {error}", where=given) from error
    except RecursionError as error:
        raise UsageError("not TOML that can be read: nested too deeply", where=given) from error
    except msgspec.ValidationError as error:
        raise UsageError(str(error), where=given) from error


def _csv(text: str, given: str, name: str) -> Measurement:
    series: dict[tuple[int, int, str], list[Point]] = {}
    hardware: dict[str, None] = {}
    for where, fields in _lines(text, given):
        hardware.setdefault(fields.pop("hardware", ""))
        line = _line(fields, where)
        point = Point(line.batch, line.default_us, line.reduction_us)
        points = series.setdefault((line.vocab_size, line.tp, line.dtype), [])
        if any(point.batch == other.batch for other in points):
            key = describe((line.vocab_size, line.tp, line.dtype))
            raise UsageError(f"batch {point.batch} is there twice for {key}", where=where)
        points.append(point)
        # Each line is checked alone, so that what is wrong with it is told with its number.
        _checked(Measurement(name, (Series(*_key(line), points=(point,)),)), where)
    if not series:
        raise UsageError("no line of figures", where=given)
    return Measurement(
        name,
        tuple(Series(*key, points=tuple(points)) for key, points in series.items()),
        hardware=", ".join(filter(None, hardware)),
    )


def _key(line: _Line) -> tuple[int, int, str]:
    return line.vocab_size, line.tp, line.dtype


def _lines(text: str, given: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each line's place and its fields by column; empty lines are none."""
    reader = csv.reader(text.splitlines())
    header: list[str] | None = None
    try:
        for cells in reader:
            where = f"{given}:{reader.line_num}"
            stripped = [cell.strip() for cell in cells]
            if not any(stripped):
                continue
            if header is None:
                header = _header(stripped, where)
                continue
            if len(stripped) != len(header):
                raise UsageError(f"{len(stripped)} fields, not {len(header)}", where=where)
            fields = zip(header, stripped, strict=True)
            yield where, {name: cell for name, cell in fields if cell or name in _NEEDED}
    except csv.Error as error:
        raise UsageError(f"not CSV: {error}", where=f"{given}:{reader.line_num}") from error


def _header(names: list[str], where: str) -> list[str]:
    for name in names:
        if name not in (*_NEEDED, *_OPTIONAL) or names.count(name) > 1:
            known = ", ".join((*_NEEDED, *_OPTIONAL))
            what = f"column {name!r} is there twice" if names.count(name) > 1 else ""
            raise UsageError(
                what or f"no column is called {name!r}", where=where, next_step=f"Columns: {known}."
            )
    if missing := [name for name in _NEEDED if name not in names]:
        raise UsageError(f"the header has no {', '.join(missing)}", where=where)
    return names


def _line(fields: dict[str, str], where: str) -> _Line:
    try:
        return msgspec.convert(fields, _Line, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(str(error), where=where) from error
