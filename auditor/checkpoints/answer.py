"""From one configuration to the draft architecture that the engine asks its registry for."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from auditor.checkpoints.configs import ConfigRun, Library
from auditor.checkpoints.conventions import checkpoint_rule
from auditor.checkpoints.document import Gap, Raised, Result, Stage
from auditor.checkpoints.engine import bare, new_run, override, read
from auditor.checkpoints.interpreter import Taken
from auditor.checkpoints.loading import Loader, class_name
from auditor.checkpoints.operations import is_data
from auditor.checkpoints.reading import Given
from auditor.checkpoints.settling import Settled, method_of_format, settle
from auditor.checkpoints.tables import Tables
from auditor.checkpoints.values import (
    CannotFollow,
    Config,
    HeldBack,
    Unknown,
    UnknownModelType,
    Value,
)
from auditor.checkpoints.values import Raised as Raises
from auditor.contracts.names import Names
from auditor.coverage import Step
from auditor.reports.names import nearest
from auditor.ruleset.engine import engine_rule
from auditor.values import Place

_MANY = 60


@dataclass(frozen=True, slots=True)
class Base:
    """A rewritten configuration, the same before that, and the run that knows their classes."""

    run: ConfigRun
    before: Value
    after: Value
    stage: Stage
    gaps: tuple[Gap, ...] = ()
    error: Raised | None = None
    model_type: str | None = None


class Answers:
    """Answers for configurations over one tree.

    Args:
        names: the definitions of the tree.
        library: an installed Transformers, or none.
        tables: the registry tables of the tree.
    """

    def __init__(self, names: Names, library: Library, tables: Tables) -> None:
        self._names = names
        self._library = library
        self._tables = tables

    def result(self, given: Given, method: str | None) -> Result:
        """What one configuration comes to, without the rows of its architecture."""
        plain = self._overridden(given.config)
        loaded = self._loaded(given)
        base = loaded if loaded.after is not None else self._filled(given, plain, loaded)
        gaps, error = [*loaded.gaps], loaded.error
        if loaded.after is None and error is None:
            error, more = self._of_bare(base)
            gaps += more
        made = Result(given.name, asked=method, remarks=given.remarks)
        made = msgspec.structs.replace(
            made,
            error=error,
            override=plain.stage,
            loaded=loaded.stage,
            gaps=tuple(gaps),
            draft_layers=_draft_layers(given.config),
        )
        if base.after is None:
            run = (loaded if loaded.error else base).run
            steps = () if error is None else tuple(_steps(run))
            return msgspec.structs.replace(made, steps=steps)
        made = msgspec.structs.replace(
            made,
            model_type=base.stage.model_type,
            n_predict=base.stage.n_predict,
            gaps=(*made.gaps, *_unknown(base.after)),
        )
        return self._settled(made, given, base, method)

    # --- the configuration

    def _overridden(self, config: Mapping[str, Any]) -> Base:
        """The configuration as it stands in the file, rewritten."""
        run = new_run(self._names, self._library)
        before: Value = None
        try:
            before = bare(run, copy.deepcopy(dict(config)))
            after = override(run, copy.deepcopy(before))
        except Raises as raised:
            return Base(run, before, None, Stage(error=_error(raised)))
        except CannotFollow as problem:
            return Base(run, before, None, Stage(gap=str(problem)), (_gap(problem),))
        return Base(run, before, after, _stage(run, after))

    def _loaded(self, given: Given) -> Base:
        """The configuration as the engine's own loading makes it, rewritten."""
        run = new_run(self._names, self._library)
        loader = Loader(run, self._library, given.model, given.config)
        try:
            loaded = loader.load()
        except Raises as raised:
            said = _error(raised)
            gap = self._doubt(raised, given, said)
            if gap is None:
                return Base(run, None, None, Stage(error=said), error=said)
            made = Base(run, None, None, Stage(error=said), (gap,))
        except CannotFollow as problem:
            gap = _gap(problem, decides=_is_held_back(run, problem))
            made = Base(run, None, None, Stage(gap=str(problem)), (gap,))
        else:
            stage = msgspec.structs.replace(
                _stage(run, loaded.after), config_class=class_name(loaded.after)
            )
            return Base(run, loaded.before, loaded.after, stage)
        known = loader.model_type
        return replace(made, model_type=known if isinstance(known, str) and known else None)

    def _doubt(self, raised: Raises, given: Given, said: Raised) -> Gap | None:
        """Why another release of Transformers may not raise this; None where it would.

        A wrong type is wrong in every release. Which model types there are is not, nor how fields
        are checked against each other, of which some may be defaults.
        """
        if not raised.from_library:
            return None
        is_new = isinstance(raised.error, UnknownModelType)
        if not is_new and said.type not in checkpoint_rule().base.comparing:
            return None
        what = f"Transformers {self._library.version} refuses the file"
        decides = not (is_new and self._is_rewritten(given))
        return Gap(f"{what}: {said.type}: {said.message}", decides=decides)

    def _is_rewritten(self, given: Given) -> bool:
        """Whether the tree itself has something to say about a model type."""
        key = engine_rule().draft.model_type
        plain = self._overridden(given.config).after
        return plain is not None and read(plain, key) != given.config.get(key)

    def _filled(self, given: Given, plain: Base, loaded: Base) -> Base:
        """The configuration of the file alone, with the model type that loading goes by.

        A file that names none would be taken for one that is rewritten by its empty name.
        """
        key = engine_rule().draft.model_type
        if given.config.get(key):
            return plain
        if loaded.model_type is None:
            gap = Gap("the file names no model type, and nothing in the tree does", decides=True)
            return replace(plain, after=None, stage=Stage(gap=gap.reason), gaps=(gap,))
        return self._overridden({**given.config, key: loaded.model_type})

    def _of_bare(self, plain: Base) -> tuple[Raised | None, list[Gap]]:
        """What is said where the answer is that of the file alone: its class may have defaults."""
        absent = {
            name: where for name, where in plain.run.absent.items() if not name.startswith("_")
        }
        if plain.stage.gap is not None:
            return None, [msgspec.structs.replace(gap, decides=True) for gap in plain.gaps]
        error = plain.stage.error
        missing = error is not None and (
            bool(absent) or not read_architectures(plain) or error.type == "AttributeError"
        )
        if missing and error is not None:
            said = f"{error.type}: {error.message}"
            reason = f"of the file alone the code raises {said}; loading may add what it lacks"
            return None, [Gap(reason, decides=True)]
        if not absent:
            return error, []
        return error, [_defaults(absent)]

    # --- the method and the registry

    def _settled(self, made: Result, given: Given, base: Base, method: str | None) -> Result:
        run = base.run
        run.open_classes = base.stage.config_class is None
        try:
            named = method or method_of_format(run, given.config)
            settled = settle(run, base.after, base.before, named, given.model)
        except CannotFollow as problem:
            gaps = (*made.gaps, _gap(problem, decides=True))
            return msgspec.structs.replace(made, gaps=gaps, steps=tuple(_steps(run)))
        except Raises as raised:
            return msgspec.structs.replace(made, refused=_error(raised), steps=tuple(_steps(run)))
        return self._registered(made, given, base, settled)

    def _registered(self, made: Result, given: Given, base: Base, settled: Settled) -> Result:
        found = _architectures(settled.config)
        independent = settled.method in engine_rule().config.independent
        pairs = [(one, self._tables.table_of(one, independent=independent)) for one in found]
        chosen = next((pair for pair in pairs if pair[1] is not None), pairs[0] if pairs else None)
        architecture, table = chosen or (None, None)
        made = msgspec.structs.replace(
            made,
            method=settled.method,
            architecture=architecture,
            refused=None if settled.error is None else _error(settled.error),
            registered=None if architecture is None else table is not None,
            table=table or (None if independent else self._tables.drafts),
            after_eagle_config=architecture if settled.wrapped else None,
            steps=tuple(_steps(base.run)),
        )
        if architecture is not None and table is None:
            made = msgspec.structs.replace(
                made, nearest=self._nearest(architecture, independent=independent)
            )
        remarks = [*made.remarks, *_remarks(made, given.config)]
        if architecture is not None and table is None and not independent:
            other = self._tables.table_of(architecture, independent=True)
            if other is not None:
                remarks.append(f"{architecture} is a model of its own, and no draft")
        return msgspec.structs.replace(made, remarks=tuple(remarks))

    def _nearest(self, architecture: str, *, independent: bool) -> tuple[str, ...]:
        tables = self._tables.independent() if independent else [self._tables.drafts]
        known = [name for table in tables for name in self._tables.architectures(table)]
        return tuple(nearest(architecture, known))


def read_architectures(plain: Base) -> Value:
    """The architectures that the override was given."""
    return read(plain.before, engine_rule().draft.architectures)


def _unknown(config: Value) -> Iterator[Gap]:
    """What is not known of the values that are shown."""
    for name in checkpoint_rule().tree.interest:
        held = read(config, name)
        if isinstance(held, Unknown):
            where = held.where or Place("", 0)
            yield Gap(f"`{name}`: {held.reason}", where.path, where.line)


def _stage(run: ConfigRun, config: Value) -> Stage:
    rule = engine_rule().draft
    kind = read(config, rule.model_type)
    if kind is None and isinstance(config, Config):
        # Named by its class.
        kind = run.object_attribute(config, rule.model_type, None) or None
    held = read(config, rule.architectures)
    first = held[0] if isinstance(held, list | tuple | str) and held else None
    return Stage(
        architecture=shown(first),
        n_predict=shown(read(config, "n_predict")),
        model_type=shown(kind),
    )


def shown(value: Value) -> Any:
    """A value as JSON can hold it: text for what is not finite or too large, null for no data."""
    match value:
        case float() if not math.isfinite(value):
            return repr(value)
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case int() if not fits(value):
            return decimal(value)
        case None | bool() | int() | float():
            return value
        case list() | tuple() if is_data(value):
            return [shown(one) for one in value]
        case dict() if is_data(value):
            return {str(shown(key)): shown(held) for key, held in value.items()}
        case _:
            return None


def fits(value: int) -> bool:
    """Whether every reader of JSON in 64 bits takes a number."""
    return -(2**63) <= value < 2**64


def decimal(value: int) -> str:
    """The digits of a number; hexadecimal ones of more than Python writes as decimal ones."""
    try:
        return str(value)
    except ValueError:
        return hex(value)


def _architectures(config: Value) -> list[str]:
    held = read(config, engine_rule().draft.architectures)
    items = held if isinstance(held, list | tuple) else []
    return [str(shown(one)) for one in items if isinstance(one, str)]


def _error(raised: Raises) -> Raised:
    message = str(shown(" ".join(raised.message.split())))
    return Raised(raised.type, message)


def _gap(problem: CannotFollow, *, decides: bool = False) -> Gap:
    where = problem.where or Place("", 0)
    return Gap(str(shown(problem.reason)), where.path, where.line, decides)


def _is_held_back(run: ConfigRun, problem: CannotFollow) -> bool:
    """Whether a run ends because of a value that Transformers may refuse."""
    every = (problem, *run.left_out)
    return any(isinstance(one, HeldBack) and one.reason == problem.reason for one in every)


def _defaults(absent: Mapping[str, Place | None]) -> Gap:
    names = ", ".join(str(shown(one)) for one in list(absent)[:_MANY])
    where = next((one for one in absent.values() if one is not None), Place("", 0))
    reason = f"the file does not have {names}; defaults of its class may stand in"
    return Gap(reason, where.path, where.line)


def _steps(run: ConfigRun) -> Iterator[Step]:
    for one in run.taken[-_MANY:]:
        yield _step(one)


def _step(one: Taken) -> Step:
    kind = {"holds": "branch", "raised": "raise", "does not hold": "raise"}.get(one.note, "set")
    text, note = (str(shown(said)) for said in (one.text, one.note))
    return Step(kind, one.where.path, one.where.line, " ".join(text.split()), note)


# --- what the file itself says


def _draft_layers(config: Mapping[str, Any]) -> int | None:
    """How many layers for drafting a file says that it has."""
    parts = [config, *(part for part in config.values() if isinstance(part, dict))]
    for name in checkpoint_rule().tree.layers:
        for part in parts:
            value = part.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and fits(value):
                return value
    return None


def _remarks(made: Result, config: Mapping[str, Any]) -> Iterator[str]:
    families = checkpoint_rule().families
    if made.draft_layers == 0:
        yield "the checkpoint says that it ships no layers for drafting"
    carried = {
        name: [key for key in keys if config.get(key) not in (None, 0, False)]
        for name, keys in families.items()
    }
    others = {name: keys for name, keys in carried.items() if keys}
    if made.method is not None and others and made.method not in others:
        said = "; ".join(f"{', '.join(keys)} ({name})" for name, keys in others.items())
        yield f"the file has fields of another kind of draft than {made.method}: {said}"
    if "auto_map" in config:
        yield "the checkpoint ships code of its own (auto_map), which is never run"
