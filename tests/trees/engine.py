"""An engine in a few files: a configuration that settles a method, a runner, and what drafts."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.contracts.contract import Contracts, Engine
from auditor.modules import locate_modules
from auditor.program import Files
from auditor.ruleset.capabilities import capability
from auditor.ruleset.engine import engine_rule
from auditor.sources.tree import MemoryTree
from trees.minivllm import RUNNER, SPECULATIVE, files

EAGLE = "vllm/transformers_utils/configs/eagle.py"
DRAFTERS = "vllm/v1/spec_decode/drafters.py"

#: The methods, the rewriting of checkpoints, and the settling of the configuration.
CONFIG = """
from typing import Literal, get_args
from vllm.config.model import ModelConfig

MTPTypes = Literal["alpha_mtp", "beta_mtp", "mtp"]
SpeculativeMethod = Literal["eagle", MTPTypes, "draft_model"]
FIRST = frozenset({"FirstModel"})

class SpeculativeConfig:
    method: str | None = None
    use_local_argmax_reduction: bool = False

    @staticmethod
    def hf_config_override(hf_config):
        if hf_config.model_type in ("alpha", "alpha_v2"):
            hf_config.model_type = "alpha_mtp"
        if hf_config.model_type == "alpha_mtp":
            layers = getattr(hf_config, "num_layers", None)
            hf_config.update({"n_predict": layers, "architectures": ["AlphaModel"]})
        if hf_config.architectures[0] == "BetaForCausalLM":
            hf_config = getattr(hf_config, "text_config", hf_config)
            hf_config.model_type = "beta_mtp"
            hf_config.update({"num_layers": 1, "architectures": ["BetaModel"]})
        return hf_config

    def __post_init__(self):
        if self.method in get_args(MTPTypes) and self.method != "mtp":
            self.method = "mtp"
        self.draft_model_config = ModelConfig(hf_overrides=self.hf_config_override)
        if self.method == "eagle":
            from vllm.transformers_utils.configs.eagle import EagleConfig
            self.draft_model_config.hf_config = EagleConfig(self.draft_model_config.hf_config)
        elif self.draft_model_config.hf_config.model_type in get_args(MTPTypes):
            self.method = "mtp"
        else:
            raise NotImplementedError(self.method)
        return self

    def use_beta(self):
        return self.method == "mtp" and (
            getattr(self.draft_model_config.hf_config, "model_type", None) == "beta_mtp"
        )

    def use_many(self):
        if self.method != "mtp" or self.draft_model_config is None:
            return False
        layers = getattr(self.draft_model_config.hf_config, "num_layers", 1)
        return min(layers, self.num_speculative_tokens) > 1
"""

#: Renames the architecture, as a configuration class may.
RENAMING = """
from transformers import PretrainedConfig

class EagleConfig(PretrainedConfig):
    def __init__(self, model=None, **kwargs):
        self.model = model
        kwargs["architectures"] = [
            f"Eagle{arch}" if not arch.startswith("Eagle") else arch
            for arch in self.model.architectures
        ]
        super().__init__(**kwargs)
"""

CLASSES = """
class Base:
    def load_model(self):
        if not hasattr(self.model, "get_top_tokens"):
            raise ValueError("no")

    def propose(self, hidden_states):
        return self.sample(hidden_states, 0)

    def sample(self, hidden_states, step):
        return self.model.get_top_tokens(hidden_states)

    def unused(self, hidden_states):
        return self.model.compute_logits(hidden_states)

class Eagle(Base):
    pass

class Single(Base):
    pass

class Many(Base):
    def sample(self, hidden_states, step):
        if self.flag:
            return self.model.get_top_tokens(hidden_states, spec_step_idx=step)
        return self.model.compute_logits(hidden_states, spec_step_idx=step)

class Beta(Base):
    def load_model(self):
        pass

    def sample(self, hidden_states, step):
        if self.flag:
            return self.model.get_top_tokens(hidden_states)
        return self.model.compute_logits(hidden_states, spec_step_idx=step)

class Silent(Base):
    def propose(self, hidden_states):
        return self.model(hidden_states)
"""

CHOOSING = """
from vllm.v1.spec_decode.drafters import Beta, Eagle, Many, Single

class GPUModelRunner:
    def __init__(self, vllm_config, rank):
        self.speculative_config = vllm_config.speculative_config
        self.drafter = None
        if self.speculative_config and rank.is_last:
            if self.speculative_config.use_beta():
                self.drafter = Beta(vllm_config)
            elif self.speculative_config.use_many():
                self.drafter = Many(vllm_config)
            elif self.speculative_config.method == "mtp":
                self.drafter = Single(vllm_config)
            else:
                self.drafter = Eagle(vllm_config)
"""

ENGINE: dict[str, str] = {
    SPECULATIVE: CONFIG,
    "vllm/config/model.py": "class ModelConfig:\n    pass\n",
    "vllm/transformers_utils/__init__.py": "",
    "vllm/transformers_utils/configs/__init__.py": "",
    EAGLE: RENAMING,
    DRAFTERS: CLASSES,
    RUNNER: CHOOSING,
}
TABLE = ("AlphaModel", "BetaModel", "EagleFirstModel", "FirstModel")


def contracts(given: Mapping[str, str], table: tuple[str, ...] = TABLE) -> Contracts:
    """The contracts of an engine that differs from the one above by some files."""
    tree = MemoryTree(files({**ENGINE, **given}))
    read = Files(tree)
    modules, _ = locate_modules(sorted(tree.files()), ["vllm"])
    return Engine(read, modules, capability("get_top_tokens"), engine_rule()).contracts(table)


def chosen(found: Contracts, architecture: str) -> list[str]:
    """What may draft for an architecture, with conditions, in order of names."""
    return sorted(
        f"{one.drafter.name} if {' and '.join(one.conditions)}" if one.conditions
        else one.drafter.name
        for one, _ in found.of(architecture)
    )  # fmt: skip
