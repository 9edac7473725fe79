"""Runs generated tests, and mutants against them, in the interpreter that has vLLM.

Plain Python with pytest and vLLM, started as a script by another interpreter than the one that
draftaudit runs in: ``runner.py REQUEST ANSWERS``. The request is JSON: ``overlay``, a folder that
holds a copy of the package, and ``tests``, each with ``name``, ``path``, its ``mutants`` and
perhaps ``only``, an expression that selects cases. Each answer is a line of JSON, written as soon
as it is known, so that a test that ends the interpreter loses no other.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any


class Outcomes:
    """A pytest plugin that counts what happened, and gives what the tests of vLLM are given."""

    def __init__(self) -> None:
        self.passed = self.failed = 0
        self.reason = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count what each case ended as."""
        if report.failed:
            self.failed += 1
            self.reason = self.reason or _last(report)
        elif report.passed and report.when == "call":
            self.passed += 1

    def pytest_collectreport(self, report: Any) -> None:
        """Keep why a file has no cases."""
        if report.failed:
            self.reason = self.reason or _last(report)
        elif report.skipped:
            self.reason = self.reason or str(report.longrepr)


def _last(report: Any) -> str:
    lines = [line for line in str(report.longrepr).splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (errors or lines or ["no reason was given"])[0][:300]


def _plugin(outcomes: Outcomes) -> Outcomes:
    import pytest

    class Plugin(Outcomes):
        @pytest.fixture
        def default_vllm_config(self) -> Iterator[Any]:
            """As in vLLM's own ``tests/conftest.py``."""
            from vllm.config import VllmConfig, set_current_vllm_config

            config = VllmConfig()
            with set_current_vllm_config(config):
                yield config

    plugin = Plugin()
    plugin.__dict__ = outcomes.__dict__
    return plugin


def _run(path: str, stop_early: bool, only: str = "") -> Outcomes:
    import pytest

    outcomes = Outcomes()
    arguments = [path, "-q", "-p", "no:cacheprovider", "--tb=short", "--no-header"]
    arguments += ["-W", "ignore", "--rootdir", os.path.dirname(path), "-c", os.devnull]
    arguments += ["-x"] if stop_early else []
    arguments += ["-k", only] if only else []
    ended = pytest.main(arguments, plugins=[_plugin(outcomes)])
    if not outcomes.passed and not outcomes.failed:
        outcomes.reason = outcomes.reason or f"no case ran: pytest ended with {ended!r}"
    return outcomes


def _owner(dotted: str) -> Any:
    parts = dotted.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            value = getattr(value, name)
        return value
    raise ImportError(dotted)


def _mutated(mutant: dict[str, str]) -> tuple[Any, Callable[..., Any]]:
    """The method with its fault, with the globals and the class of the one that it replaces."""
    cls = _owner(mutant["cls"])
    module = sys.modules[cls.__module__]
    body = "\n".join("    " + line for line in mutant["source"].splitlines())
    scope: dict[str, Any] = {}
    maker = f"def _make(__class__):\n{body}\n    return {mutant['method']}\n"
    exec(compile(maker, f"<{mutant['fault']}>", "exec"), module.__dict__, scope)
    return cls, scope["_make"](cls)


def _try_mutant(path: str, mutant: dict[str, str]) -> Outcomes:
    try:
        cls, function = _mutated(mutant)
    except (SyntaxError, ImportError, AttributeError, NameError) as error:
        # A mutant that cannot be made has killed nothing.
        outcomes = Outcomes()
        outcomes.reason = f"cannot be built: {type(error).__name__}: {error}"[:300]
        return outcomes
    name = mutant["method"]
    before = cls.__dict__.get(name)
    setattr(cls, name, function)
    try:
        return _run(path, stop_early=True)
    finally:
        if before is None:
            delattr(cls, name)
        else:
            setattr(cls, name, before)


def main(request_path: str, answers_path: str) -> None:
    """Run everything that is asked for."""
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    sys.path.insert(0, request["overlay"])
    # What the user's environment asks of pytest is not meant for these tests.
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with open(answers_path, "a", encoding="utf-8") as answers:

        def tell(**what: object) -> None:
            answers.write(json.dumps(what) + "\n")
            answers.flush()

        try:
            import pytest  # noqa: F401
        except ImportError:
            tell(missing="pytest")
            return
        import vllm
        from vllm.platforms import current_platform

        tell(package=os.path.dirname(vllm.__file__), platform=current_platform.device_name)
        for test in request["tests"]:
            tell(begin=test["name"])
            outcomes = _run(test["path"], stop_early=False, only=test.get("only", ""))
            tell(
                test=test["name"],
                passed=outcomes.passed,
                failed=outcomes.failed,
                reason=outcomes.reason,
            )
            if outcomes.failed or not outcomes.passed:
                continue
            for mutant in test["mutants"]:
                tried = _try_mutant(test["path"], mutant)
                tell(
                    mutant=test["name"],
                    fault=mutant["fault"],
                    method=f"{mutant['cls']}.{mutant['method']}",
                    killed=tried.failed > 0,
                    reason=tried.reason,
                )
        tell(end=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
