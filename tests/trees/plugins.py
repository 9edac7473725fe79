"""Mini plugins over a mini vLLM: files of a project in, an opened plugin or a document out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage, PluginEvent, Row
from auditor.sources.cache import CacheConfig
from auditor.sources.plugin import Plugin, open_plugin
from trees.minivllm import REGISTRY, source

GROUPS = ("vllm.platform_plugins", "vllm.general_plugins")
HAS, LACKS = "vllm.models.draft.nvidia", "vllm.models.draft.amd"
REGISTRY_MODULE = "vllm.model_executor.models.registry"

#: What a vLLM has that plugins meet: a registry with an object of its own, and a platform class.
VLLM: dict[str, str] = {
    "vllm/__init__.py": """
        def __getattr__(name):
            if name == "ModelRegistry":
                from vllm.model_executor.models.registry import ModelRegistry
                return ModelRegistry
            raise AttributeError(name)
        """,
    "vllm/models/draft/__init__.py": "from vllm.models.draft.amd import Draft",
    REGISTRY: """
        from dataclasses import dataclass, field

        _TEXT_GENERATION_MODELS = {
            "TargetModel": ("vllm.models.draft", "Draft"),
        }
        _SPECULATIVE_DECODING_MODELS = {
            "DraftModel": ("vllm.models.draft", "Draft"),
            "OtherDraftModel": ("vllm.models.draft", "Draft"),
        }
        _VLLM_MODELS = {**_TEXT_GENERATION_MODELS, **_SPECULATIVE_DECODING_MODELS}

        @dataclass(frozen=True)
        class _LazyRegisteredModel:
            module_name: str
            class_name: str

        @dataclass
        class _ModelRegistry:
            models: dict = field(default_factory=dict)

            def get_supported_archs(self):
                return self.models.keys()

            def register_model(self, model_arch, model_cls):
                if not isinstance(model_arch, str):
                    raise TypeError("a string, please")
                if isinstance(model_cls, str):
                    model = _LazyRegisteredModel(*model_cls.split(":"))
                else:
                    model = model_cls
                self.models[model_arch] = model

        ModelRegistry = _ModelRegistry(
            {
                arch: _LazyRegisteredModel(module_name=module, class_name=name)
                for arch, (module, name) in _VLLM_MODELS.items()
            }
        )
        """,
    "vllm/platforms/interface.py": """
        import enum

        class PlatformEnum(enum.Enum):
            CUDA = enum.auto()
            ROCM = enum.auto()
            TPU = enum.auto()
            XPU = enum.auto()
            CPU = enum.auto()
            OOT = enum.auto()

        class Platform:
            _enum: PlatformEnum
            device_name: str
            device_type: str

            def is_cuda(self):
                return self._enum == PlatformEnum.CUDA

            def is_rocm(self):
                return self._enum == PlatformEnum.ROCM

            def is_tpu(self):
                return self._enum == PlatformEnum.TPU

            def is_xpu(self):
                return self._enum == PlatformEnum.XPU

            def is_cpu(self):
                return self._enum == PlatformEnum.CPU

            def is_out_of_tree(self):
                return self._enum == PlatformEnum.OOT

            def is_cuda_alike(self):
                return self._enum in (PlatformEnum.CUDA, PlatformEnum.ROCM)

            @classmethod
            def pre_register_and_update(cls, parser=None):
                pass
        """,
    "vllm/platforms/__init__.py": """
        from .interface import Platform, PlatformEnum

        _current_platform = None

        def __getattr__(name):
            if name == "current_platform":
                global _current_platform
                if _current_platform is None:
                    _current_platform = object()
                return _current_platform
            raise AttributeError(f"no {name} here")
        """,
}

WITH_METHOD = """
import torch.nn as nn

class Mine(nn.Module):
    def compute_logits(self, hidden_states):
        return None

    def get_top_tokens(self, hidden_states):
        return None
"""


def pyproject(platform: str = "", general: str = "", name: str = "vllm-mine") -> str:
    """A project file with one entry point for each group that is named."""
    lines = ["[project]", f'name = "{name}"', 'version = "1.2"']
    for group, target in zip(GROUPS, (platform, general), strict=True):
        if target:
            lines += ["", f'[project.entry-points."{group}"]', f'mine = "{target}"']
    return "\n".join(lines) + "\n"


def general(body: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """A project whose general entry point is a function with this body."""
    lines = dedent(body).strip("\n").splitlines()
    function = "def register():\n" + "".join(f"    {line}\n" for line in lines)
    return {
        "pyproject.toml": pyproject(general="mine:register"),
        "mine/__init__.py": function,
        "mine/models.py": WITH_METHOD,
        **(more or {}),
    }


def platform(enum: str, more: str = "", **files: str) -> dict[str, str]:
    """A project that gives a platform of this member of the enumeration."""
    body = f"""
        from vllm.platforms import Platform, PlatformEnum

        class MyPlatform(Platform):
            _enum = PlatformEnum.{enum}
            device_name: str = "mine"
            device_type: str = "mine"
        """
    text = dedent(body) + "".join(f"    {line}\n" for line in dedent(more).strip().splitlines())
    return {
        "pyproject.toml": pyproject(platform="mine:register"),
        "mine/__init__.py": 'def register():\n    return "mine.platform.MyPlatform"\n',
        "mine/platform.py": text,
        **files,
    }


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """A project as files below ``folder``."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(dedent(text).lstrip("\n"))
    return folder


def opened(folder: Path, files: Mapping[str, str]) -> Plugin:
    """A project, written and opened as a plugin."""
    (plugin,) = open_plugin(
        str(write(folder, files)), GROUPS, "vllm", cwd=folder, cache=CacheConfig.off()
    )
    return plugin


def audited(
    folder: Path,
    *projects: Mapping[str, str],
    vllm: Mapping[str, str] | None = None,
    request: Request | None = None,
) -> Coverage:
    """The mini vLLM with plugins over it; on one platform where none is named or given."""
    plugins = [opened(folder / f"plugin{n}", files) for n, files in enumerate(projects)]
    tree = source({**VLLM, **(vllm or {})})
    return audit(tree, request or Request(), Resources(processes=1), plugins)


def on_rocm(
    folder: Path, *projects: Mapping[str, str], vllm: Mapping[str, str] | None = None
) -> Coverage:
    """The same, on ROCm alone."""
    return audited(folder, *projects, vllm=vllm, request=Request(platforms=("rocm",)))


def row(document: Coverage, architecture: str = "DraftModel") -> Row:
    """The first row of an architecture."""
    return next(row for row in document.rows if row.architecture == architecture)


def events(document: Coverage, kind: str = "") -> list[PluginEvent]:
    """What the plugins do."""
    every = [event for plugin in document.plugins for event in plugin.events]
    return [event for event in every if kind in ("", event.kind)]
