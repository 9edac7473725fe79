"""Documents for the HTML report, and a reader of what it writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from msgspec.structs import replace

from auditor.coverage import (
    Caller,
    Condition,
    Coverage,
    Finding,
    Head,
    MethodPath,
    SourceInfo,
    Step,
    UndecidedItem,
    Way,
)

from .samples import MIXIN, MODELS, PLATFORMS, decided, document, eagle, mtp, v32

MTP_FILE = "vllm/model_executor/models/deepseek_mtp.py"


def versioned(coverage: Coverage, version: str | None, label: str | None = None) -> Coverage:
    """The same answers, said of another version."""
    name = label if label is not None else f"vllm {version}"
    return replace(coverage, source=SourceInfo(name, version, f"sha256:{version}"))


def way(head: str, *hops: Step) -> Way:
    return Way((), "logits_processor", head, "norm(hidden_states)", None, (), "argmax", hops)


def told() -> Coverage:
    """Three architectures with everything that a panel can show."""
    hop = Step("hop", MTP_FILE, 77, "return self.model.compute_logits(hidden_states)")
    head = Head(
        f"{MODELS}.deepseek_mtp.DeepSeekMTP",
        PLATFORMS,
        MethodPath("compute_logits", "shared_head ∘ norm", (way("shared_head", hop),)),
        None,
        shape="per-step-pre-norm",
        fix="Add a forwarding pair that applies the norm.",
        conditions=(Condition("vocabulary", "assumed", "both have the same size", MTP_FILE, 65),),
        remarks=(Step("check", MTP_FILE, 80, "assert x", "only one checks this"),),
    )
    finding = Finding(
        "SD201", "error", "picks other tokens", MTP_FILE, 9, ("DeepSeekMTPModel",), ("rocm",)
    )
    caller = Caller(
        "vllm.v1.EagleProposer",
        "vllm.v1.Runner",
        "mtp",
        ("x is set",),
        None,
        Step("made", "vllm/v1/runner.py", 3, "EagleProposer()"),
        (Step("call", "vllm/v1/eagle.py", 4, "", "get_top_tokens(hidden_states)"),),
        True,
        ("DeepSeekMTPModel",),
    )
    item = UndecidedItem(
        "condition", "vllm/envs.py", 5, "if X:", "X is not known", (), ("DeepSeekMTPModel",)
    )
    return versioned(
        replace(
            decided(), heads=(head,), findings=(finding,), callers=(caller,), undecided=(item,)
        ),
        "0.31.0",
    )


def earlier() -> Coverage:
    """The version before: without V32, with an Eagle that lacks the method on ROCm."""
    rows = [
        replace(eagle(name), verdict="no", hasattr=False, owner=None)
        if name == "rocm"
        else eagle(name)
        for name in PLATFORMS
    ]
    return versioned(document(*rows, *(mtp(name) for name in PLATFORMS)), "0.30.0")


def two() -> list[Coverage]:
    return [earlier(), told()]


class Elements(HTMLParser):
    """The elements of a page in order, with their attributes and the text right inside."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said: list[str] = []
        self.found.append((tag, dict(attrs), said))
        if tag not in ("meta", "link", "input", "br"):
            self._open.append(said)

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1].append(data)

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        """Attributes and text of each element of a name."""
        return [(attrs, "".join(said)) for name, attrs, said in self.found if name == tag]


def data_of(text: str) -> Any:
    """The document behind the cells, read as ``page.js`` reads it."""
    (said,) = [
        said
        for attrs, said in Elements(text).of("script")
        if attrs.get("type") == "application/json"
    ]
    pool = json.loads(said)
    values: list[Any] = []
    for node in pool["nodes"]:
        values.append(_value(node, values, pool["shapes"]))
    return values[-1]


def _value(node: Any, values: Sequence[Any], shapes: Sequence[list[str]]) -> Any:
    if not isinstance(node, list):
        return node
    parts = [values[position] for position in node[1:]]
    return dict(zip(shapes[node[0] - 1], parts, strict=True)) if node[0] else parts


__all__ = [
    "MIXIN", "Elements", "data_of", "earlier", "told", "two", "v32", "versioned",
]  # fmt: skip
