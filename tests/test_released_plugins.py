"""A released plugin over the release that it pairs with."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from trees.plugins import GROUPS, row

from auditor.api import Request, Resources, audit
from auditor.sources.cache import CacheConfig
from auditor.sources.plugin import open_plugin
from auditor.sources.tree import Source

#: A draft architecture that the plugin registers, and one that it leaves to vLLM.
REGISTERED, LEFT = "DeepSeekMTPModel", "EagleLlamaForCausalLM"
MIXIN = "vllm.model_executor.models.interfaces.LocalArgmaxMixin"


@pytest.mark.network
@pytest.mark.slow
def test_vllm_ascend_over_the_release_that_it_pairs_with(
    release: Callable[[str], Source],
) -> None:
    folder = os.environ.get("DRAFTAUDIT_TEST_CACHE")
    cache = CacheConfig.at(Path(folder)) if folder else CacheConfig.default()
    plugins = open_plugin("vllm-ascend==0.30.0rc2", GROUPS, "vllm", cwd=Path.cwd(), cache=cache)
    request = Request(architectures=(REGISTERED, LEFT))
    document = audit(release("0.30.0"), request, Resources(processes=1), plugins)
    assert document.platforms == ("vllm-ascend",)
    (plugin,) = document.plugins
    assert plugin.platform_class == "vllm_ascend.platform.NPUPlatform"
    registered, left = row(document, REGISTERED), row(document, LEFT)
    assert (registered.module, registered.hasattr) == ("vllm_ascend.models.deepseek_mtp", False)
    first = registered.evidence[0]
    assert (first.kind, first.path) == ("plugin", "vllm_ascend/models/__init__.py")
    assert f'"{REGISTERED}"' in first.text
    assert (left.module, left.owner) == ("vllm.model_executor.models.llama_eagle", MIXIN)
    # It registers both drafts of that family.
    assert "SD402" not in {finding.code for finding in document.findings}
