"""A vLLM of a few files that really imports: for interpreters that are asked what they have.

Beside it stand the modules that it imports from elsewhere, so that a folder on ``PYTHONPATH`` is
an installation. It runs on the CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trees.minivllm import REGISTRY, WITH_METHOD, WITH_MIXIN, WITHOUT_METHOD, files, registry

PLATFORM = "vllm/platforms/__init__.py"

BESIDE = {
    "torch/__init__.py": "",
    "torch/nn.py": "class Module:\n    pass\n",
    "broken/__init__.py": "import absent.part\n",
    "outer/inner/module.py": "",
}

#: The classes of the entries that every tree has.
ENTRIES = {
    "OwnModel": ("vllm.models.own", "Draft"),
    "MixinModel": ("vllm.models.mixed", "Draft"),
    "LackingModel": ("vllm.models.lacking", "Draft"),
    "GpuModel": ("vllm.models.gpu", "Draft"),
    "NamelessModel": ("vllm.models.lacking", "Nothing"),
    "NoneModel": ("vllm.models.none", "Draft"),
    "DispatchedModel": ("vllm.models.dispatched", "Draft"),
}

MODELS = {
    PLATFORM: """
        class CpuPlatform:
            device_type = "cpu"

            def __getattr__(self, name):
                return None

            def is_cpu(self):
                return True

            def is_cuda(self):
                return False

            def is_rocm(self):
                return False

            def is_xpu(self):
                return False

            def is_tpu(self):
                return False

            def is_out_of_tree(self):
                return False

        current_platform = CpuPlatform()
        """,
    "vllm/models/own.py": 'print("printed while importing {")\n' + WITH_METHOD,
    "vllm/models/mixed.py": WITH_MIXIN,
    "vllm/models/lacking.py": WITHOUT_METHOD,
    "vllm/models/gpu.py": "import absent.part\n" + WITH_METHOD,
    "vllm/models/none.py": "Draft = None\n",
    "vllm/models/dispatched.py": """
        from vllm.platforms import current_platform

        if current_platform.is_cuda():
            from vllm.models.own import Draft
        else:
            from vllm.models.lacking import Draft
        """,
}


def install(folder: Path, given: Mapping[str, str], more: Mapping[str, str]) -> Path:
    """Write the tree with ``more`` entries, each of a module of its own, and what is beside it.

    Args:
        folder: where.
        given: files by path, in the place of those of the same path.
        more: the source of a module by architecture; it defines ``Draft``.
    """
    modules = {name: f"vllm.models.{name.lower()}" for name in more}
    entries = {**{name: (module, "Draft") for name, module in modules.items()}, **ENTRIES}
    sources = {f"{modules[name].replace('.', '/')}.py": text for name, text in more.items()}
    tree = {**BESIDE, **MODELS, REGISTRY: registry(entries), **sources, **given}
    for path, content in files(tree).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder
