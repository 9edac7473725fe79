"""Run by an interpreter that has vLLM: which classes does it take once it has loaded a plugin?

Takes the folder of the plugin; reads from standard input the modules that a build of it would make
(name to attributes); writes the platform's class, the entry points that failed, the modules that
were stood in for, and by architecture the class with its answer, or how loading it failed.

What the plugin's own files import and is not installed here (the driver of its hardware) is stood
in for by an object that has every attribute; what vLLM itself misses stays missing.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.metadata
import json
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import torch

#: Devices that a driver adds to torch.
DEVICES = ("npu", "rbln")


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what files below one folder import and nobody else has found."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.names: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if top not in self.names and (rest or not self._is_asked_by_the_plugin()):
            return None
        self.names.add(top)
        return ModuleSpec(fullname, self, is_package=True)

    def _is_asked_by_the_plugin(self) -> bool:
        frame: Any = sys._getframe(2)
        while frame is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith(self._folder)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module: Any = MagicMock(name=spec.name)
        module.__name__, module.__path__, module.__spec__ = spec.name, [], spec
        module.__version__ = "99.0"
        return module  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: it has everything already."""


def _make(modules: dict[str, dict[str, str]]) -> None:
    for name, attributes in modules.items():
        module = types.ModuleType(name)
        vars(module).update(attributes)
        sys.modules[name] = module
        package, _, own = name.rpartition(".")
        setattr(importlib.import_module(package), own, module)


def _load_plugins(folder: str) -> dict[str, str]:
    """Run the general entry points; how each that raises does."""
    failed: dict[str, str] = {}
    for distribution in importlib.metadata.distributions(path=[folder]):
        for entry in distribution.entry_points:
            if entry.group == "vllm.general_plugins":
                try:
                    entry.load()()
                except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
                    failed[entry.name] = f"{type(error).__name__}: {error}"
    return failed


def _row(registered: Any, probed: str) -> dict[str, Any]:
    try:
        cls = registered.load_model_cls()
    except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
        return {"error": type(error).__name__, "message": str(error)}
    owner = next((base for base in cls.__mro__ if probed in vars(base)), None)
    return {
        "module": cls.__module__,
        "class": cls.__qualname__,
        "hasattr": hasattr(cls, probed),
        "owner": f"{owner.__module__}.{owner.__qualname__}" if owner else None,
    }


def main() -> None:
    folder = sys.argv[1]
    sys.path.insert(0, folder)
    stand_ins = StandIns(folder)
    sys.meta_path.append(stand_ins)
    _make(json.load(sys.stdin))
    for device in DEVICES:
        if not hasattr(torch, device):
            sys.modules[f"torch.{device}"] = MagicMock()
            setattr(torch, device, sys.modules[f"torch.{device}"])

    from vllm.model_executor.models import registry
    from vllm.platforms import current_platform

    models = registry.ModelRegistry.models
    before = dict(models)
    failed = _load_plugins(folder)
    registered = {name for name, model in models.items() if before.get(name) != model}
    asked = sorted(registered | set(registry._SPECULATIVE_DECODING_MODELS))
    rows = {name: _row(models[name], "get_top_tokens") for name in asked}
    platform = type(current_platform)
    answer = {
        "platform": f"{platform.__module__}.{platform.__qualname__}",
        "failed": failed,
        "stood_in": sorted(stand_ins.names),
        "registered": sorted(registered),
        "rows": rows,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
