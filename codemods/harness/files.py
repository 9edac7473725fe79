"""Which test files there are for a plan, and what they are called."""

from __future__ import annotations

import re
from collections.abc import Iterable

from codemods.harness.render import file_of
from codemods.plans import Trial

#: Where vLLM keeps its tests of speculative decoding.
FOLDER = "tests/v1/spec_decode"
#: Packages of models, which say nothing in a name.
_PACKAGES = ("vllm.model_executor.models.", "vllm.models.")


def named(trials: Iterable[Trial]) -> dict[str, Trial]:
    """The trials that have a test, by the path of its file in the tree."""
    found: dict[str, Trial] = {}
    for trial in trials:
        if trial.subject is not None:
            name = _name(trial.cls)
            whole = trial.cls.rpartition(".")[0].replace(".", "_")
            names = (name, f"{name}_{_snake(trial.cls)}", f"{whole}_{_snake(trial.cls)}")
            paths = (f"{FOLDER}/test_{one}_local_argmax.py" for one in names)
            found[next(path for path in paths if path not in found)] = trial
    return found


def files_of(trials: Iterable[Trial]) -> dict[str, bytes]:
    """The files, by their path in the tree."""
    return {
        path: file_of(trial.subject).encode()
        for path, trial in named(trials).items()
        if trial.subject is not None
    }


def _name(cls: str) -> str:
    module = cls.rpartition(".")[0]
    for package in _PACKAGES:
        module = module.removeprefix(package)
    return module.replace(".", "_")


def _snake(cls: str) -> str:
    own = cls.rpartition(".")[2]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", own).lower()
