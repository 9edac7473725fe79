"""Coverage documents written by hand."""

from __future__ import annotations

from auditor.coverage import (
    Coverage,
    ErrorInfo,
    Row,
    SourceInfo,
    Step,
    UndecidedItem,
    VerdictName,
    sorted_coverage,
)

PLATFORMS = ("cuda", "rocm", "xpu", "cpu", "tpu", "oot")
MODELS = "vllm.model_executor.models"
MIXIN = f"{MODELS}.interfaces.LocalArgmaxMixin"
REGISTRY_PATH = "vllm/model_executor/models/registry.py"
V32_INIT = "vllm/models/deepseek_v32/__init__.py"

GUARD = Step(
    "guard",
    "vllm/v1/spec_decode/llm_base_proposer.py",
    501,
    'if not hasattr(self.model, "get_top_tokens"):',
    "ValueError: DeepSeekMTP does not have get_top_tokens",
)


def registered(architecture: str, line: int = 500) -> Step:
    return Step("registry", REGISTRY_PATH, line, f'"{architecture}": (...)')


def eagle(platform: str) -> Row:
    """Provided by a mixin everywhere."""
    module = f"{MODELS}.llama_eagle"
    return Row(
        "EagleLlamaForCausalLM",
        platform,
        "yes?",
        True,
        module,
        "EagleLlamaForCausalLM",
        MIXIN,
        reason="equivalence is not proven by this version",
        evidence=(
            registered("EagleLlamaForCausalLM"),
            Step("class", "vllm/model_executor/models/llama_eagle.py", 150, "class EagleLlama"),
            Step("base", "vllm/model_executor/models/llama_eagle.py", 150, "LocalArgmaxMixin"),
        ),
    )


def mtp(platform: str) -> Row:
    """Missing everywhere; the guard would raise."""
    module = f"{MODELS}.deepseek_mtp"
    evidence = (registered("DeepSeekMTPModel", 501), GUARD)
    return Row(
        "DeepSeekMTPModel", platform, "no", False, module, "DeepSeekMTP", None, evidence=evidence
    )


def v32(platform: str) -> Row:
    """Another class on each platform: one on CUDA, one that cannot be imported elsewhere."""
    branch = Step("branch", V32_INIT, 8, "if current_platform.is_cuda():", "taken")
    start = registered("DeepseekV32MTPModel", 502)
    if platform == "cuda":
        module = "vllm.models.deepseek_v32.nvidia.mtp"
        owner = f"{module}.DeepseekV32MTP"
        evidence = (start, branch)
        return Row(
            "DeepseekV32MTPModel",
            platform,
            "unsafe",
            True,
            module,
            "DeepseekV32MTP",
            owner,
            evidence=evidence,
        )
    chain = (
        Step("import", V32_INIT, 12, "from .amd.mtp import DeepseekV32MTP"),
        Step("import", "vllm/models/deepseek_v32/amd/mtp.py", 20, "import deep_gemm"),
    )
    error = ErrorInfo("ModuleNotFoundError", "No module named 'deep_gemm'", chain)
    return Row(
        "DeepseekV32MTPModel",
        platform,
        "import",
        None,
        None,
        None,
        None,
        error=error,
        evidence=(start, Step("branch", V32_INIT, 10, "else:", "taken")),
    )


def open_row(platform: str) -> Row:
    """Nobody knows."""
    return Row(
        "MiMoMTPModel",
        platform,
        "?",
        None,
        None,
        None,
        None,
        reason="vllm.envs.VLLM_USE_X is not known; give --env VLLM_USE_X=0",
        evidence=(registered("MiMoMTPModel", 503),),
    )


def document(
    *rows: Row,
    platforms: tuple[str, ...] = PLATFORMS,
    undecided: tuple[UndecidedItem, ...] = (),
    notes: tuple[str, ...] = (),
) -> Coverage:
    """A Coverage of the given rows in canonical order."""
    return sorted_coverage(
        Coverage(
            schema_version="1.0",
            capability="get_top_tokens",
            registry=f"{MODELS}.registry._SPECULATIVE_DECODING_MODELS",
            source=SourceInfo("vllm 0.30.0", "0.30.0", "sha256:0f"),
            platforms=platforms,
            imports="run",
            notes=notes,
            rows=rows,
            undecided=undecided,
        )
    )


def decided() -> Coverage:
    """Three architectures, six platforms, all decided."""
    return document(*(make(name) for make in (eagle, mtp, v32) for name in PLATFORMS))


def named(text: str, verdict: VerdictName = "no") -> Coverage:
    """One row in which the tree chose every name, to see whether they are shown literally."""
    error = ErrorInfo(text, text, (Step("import", f"vllm/{text}.py", 1, text, text),))
    row = Row(
        text,
        "cuda",
        verdict,
        None,
        text,
        text,
        text,
        error=error,
        reason=text,
        evidence=(Step("class", f"vllm/{text}.py", 7, text, text), Step("guard", text, 1, text)),
    )
    item = UndecidedItem("file", f"vllm/{text}.py", 3, text, text)
    return document(row, platforms=("cuda",), undecided=(item,), notes=(text,))
