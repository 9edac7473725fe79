"""A mini vLLM that loads, rewrites and settles configurations, and has four draft classes."""

from __future__ import annotations

from trees.minivllm import REGISTRY, SPECULATIVE, WITH_METHOD, WITHOUT_METHOD

CONFIG = "vllm/transformers_utils/config.py"
TREE: dict[str, str | bytes] = {
    SPECULATIVE: """
        from typing import Literal, get_args

        from pydantic import Field

        from vllm.config.model import ModelConfig
        from vllm.logger import init_logger

        logger = init_logger(__name__)

        MTPModelTypes = Literal["one_mtp", "mtp"]
        SpeculativeMethod = Literal["draft_model", "eagle", "eagle3", "dspark", MTPModelTypes]


        class SpeculativeConfig:
            model: str | None = None
            method: str | None = None
            num_speculative_tokens: int = Field(default=None, gt=0)
            target_model_config: ModelConfig = None
            draft_model_config: ModelConfig = None
            use_local_argmax_reduction: bool = False

            @staticmethod
            def hf_config_override(hf_config):
                first = hf_config.architectures[0]
                if hf_config.model_type in ("pre_one"):
                    hf_config.model_type = "one"
                if hf_config.model_type == "one":
                    n_predict = getattr(hf_config, "num_nextn_predict_layers", None)
                    if n_predict is not None and n_predict < 0:
                        raise ValueError(f"{n_predict=} layers for {first}")
                    hf_config.model_type = "one_mtp"
                    hf_config.update({"n_predict": n_predict, "architectures": ["OneMTP"]})
                if hf_config.model_type == "wrapper":
                    hf_config = getattr(hf_config, "text_config", hf_config)
                    hf_config.model_type = "one_mtp"
                    hf_config.update({"n_predict": 1, "architectures": ["OneNMTP"]})
                return hf_config

            def __post_init__(self):
                if self.method is None:
                    self.method = "draft_model"
                if self.model is None and self.num_speculative_tokens is not None:
                    raise ValueError("no model")
                self.draft_model_config = ModelConfig(
                    model=self.model, tokenizer=self.target_model_config.tokenizer
                )
                if self.method in ("eagle", "dspark"):
                    pass
                elif "eagle-" in self.draft_model_config.model.lower():
                    self.method = "eagle"
                elif self.draft_model_config.hf_config.model_type in get_args(MTPModelTypes):
                    self.method = "mtp"
                    if self.num_speculative_tokens > 1:
                        logger.warning("many")
                elif self.method != "draft_model":
                    raise NotImplementedError(f"Unsupported speculative method: {self.method!r}")
                if self.method == "eagle":
                    from vllm.transformers_utils.configs.eagle import EAGLEConfig

                    self.draft_model_config.hf_config = EAGLEConfig(
                        self.draft_model_config.hf_config, method=self.method, model_type="eagle"
                    )
                if self.method == "dspark" and (
                    "SparkModel" not in self.draft_model_config.architectures
                ):
                    self.draft_model_config.hf_config.architectures = ["Spark"]
                self.draft_tensor_parallel_size = self.target_parallel_config.size + 1
                if self.num_speculative_tokens % 2:
                    raise ValueError("odd")
                return self
        """,
    "vllm/config/model.py": "class ModelConfig:\n    pass\n",
    "vllm/logger.py": """
        import logging

        def init_logger(name):
            return logging.getLogger(name)
        """,
    "vllm/transformers_utils/__init__.py": "",
    CONFIG: """
        from transformers import AutoConfig, PretrainedConfig
        from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

        from vllm.logger import init_logger

        logger = init_logger(__name__)

        class LazyConfigDict(dict):
            def __getitem__(self, key):
                import vllm.transformers_utils.configs as configs

                return getattr(configs, super().__getitem__(key))

        _CONFIG_REGISTRY = LazyConfigDict(one="OneConfig", strict="StrictConfig")

        class HFConfigParser:
            def parse(self, model, trust_remote_code, **kwargs):
                config_dict, _ = PretrainedConfig.get_config_dict(model, **kwargs)
                model_type = config_dict.get("model_type")
                if model_type in _CONFIG_REGISTRY:
                    AutoConfig.register(model_type, _CONFIG_REGISTRY[model_type], exist_ok=True)
                config = AutoConfig.from_pretrained(model, trust_remote_code=trust_remote_code)
                return config_dict, config

        def get_config(model, trust_remote_code, config_format="auto", hf_overrides_fn=None):
            config_dict, config = HFConfigParser().parse(model, trust_remote_code)
            if not config.architectures:
                if config.model_type not in MODEL_MAPPING_NAMES:
                    logger.warning("no architectures")
                else:
                    config.update({"architectures": [MODEL_MAPPING_NAMES[config.model_type]]})
            if hf_overrides_fn:
                config = hf_overrides_fn(config)
            return config
        """,
    "vllm/transformers_utils/configs/__init__.py": """
        import importlib

        _CLASS_TO_MODULE = {
            "OneConfig": "vllm.transformers_utils.configs.one",
            "StrictConfig": "vllm.transformers_utils.configs.one",
        }

        def __getattr__(name):
            if name in _CLASS_TO_MODULE:
                return getattr(importlib.import_module(_CLASS_TO_MODULE[name]), name)
            raise AttributeError(f"no {name!r}")
        """,
    "vllm/transformers_utils/configs/one.py": """
        from transformers import PretrainedConfig

        class OneConfig(PretrainedConfig):
            model_type = "one"

            def __init__(self, vocab_size=100, num_nextn_predict_layers=2, **kwargs):
                self.vocab_size = vocab_size
                self.num_nextn_predict_layers = num_nextn_predict_layers
                super().__init__(**kwargs)

        class StrictConfig(PretrainedConfig):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                if not getattr(self, "target_layer_ids", None):
                    raise ValueError("no target_layer_ids")
        """,
    "vllm/transformers_utils/configs/eagle.py": """
        from transformers import PretrainedConfig

        class EAGLEConfig(PretrainedConfig):
            model_type = "eagle"

            def __init__(self, model=None, method="eagle", **kwargs):
                self.model = model
                self.truncated = self.model.vocab_size
                kwargs["architectures"] = [
                    arch if arch.startswith("Eagle") else f"Eagle{arch}"
                    for arch in self.model.architectures
                ]
                super().__init__(**kwargs)
                for k, v in self.model.to_dict().items():
                    if k not in kwargs:
                        setattr(self, k, v)
        """,
    "vllm/models/has.py": WITH_METHOD,
    "vllm/models/lacks.py": WITHOUT_METHOD,
    REGISTRY: """
        _TEXT_GENERATION_MODELS = {"PlainForCausalLM": ("vllm.models.lacks", "Draft")}
        _SPECULATIVE_DECODING_MODELS = {
            "OneMTP": ("vllm.models.lacks", "Draft"),
            "EagleLlama": ("vllm.models.has", "Draft"),
            "Spark": ("vllm.models.has", "Draft"),
        }
        """,
}
