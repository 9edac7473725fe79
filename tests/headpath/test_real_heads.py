"""Real releases: every head path is followed, and the families come out as vLLM has them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import pytest

from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage, Head, Row
from auditor.sources.tree import Source, Tree

pytestmark = [pytest.mark.network, pytest.mark.slow]

Release = Callable[[str], Source]
RELEASES = ("0.30.0", "0.32.0", "0.33.0")


@cache
def _audited(release: Release, version: str) -> Coverage:
    return audit(release(version), Request(), Resources(None, 1))


def _row(coverage: Coverage, architecture: str, platform: str) -> Row:
    (row,) = [r for r in coverage.rows if (r.architecture, r.platform) == (architecture, platform)]
    return row


def _head(coverage: Coverage, architecture: str, platform: str) -> Head:
    row = _row(coverage, architecture, platform)
    wanted = f"{row.module}.{row.class_}"
    (head,) = [h for h in coverage.heads if h.class_ == wanted and platform in h.platforms]
    return head


@pytest.mark.parametrize("version", RELEASES)
def test_at_most_two_architectures_have_a_part_that_was_not_followed(
    release: Release, version: str
) -> None:
    coverage = _audited(release, version)
    unknown = {
        (head.class_, step.path, step.note)
        for head in coverage.heads
        for path in (head.logits, head.tokens)
        for way in (path.ways if path is not None else ())
        for step in way.unknown
    }
    assert len({cls for cls, _, _ in unknown}) <= 2
    assert all(path and reason for _, path, reason in unknown)


@pytest.mark.parametrize("version", RELEASES)
def test_every_class_with_logits_has_a_path_and_a_shape_or_a_reason(
    release: Release, version: str
) -> None:
    coverage = _audited(release, version)
    for row in coverage.rows:
        if row.hasattr is None or row.class_ is None:
            continue
        head = _head(coverage, row.architecture, row.platform)
        if head.logits is None:
            assert row.verdict in ("n/a", "stub")
            continue
        assert head.logits.ways
        unknown = any(way.unknown for way in head.logits.ways)
        assert (head.shape is None) is unknown


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize(
    ("architecture", "platform", "shape", "returns", "equivalence"),
    [
        ("DeepSeekMTPModel", "rocm", "per-step-pre-norm", ("raw", "normed"), None),
        ("DeepseekV32MTPModel", "cuda", "per-step-post-norm", ("normed", "normed"), "equivalent"),
        ("DeepSeekV4MTPModel", "cuda", "hyper-connection", None, None),
        ("DeepSeekV4MTPModel", "rocm", "hyper-connection", None, "same"),
        ("MiniMaxM3MTP", "rocm", "flat-pre-norm", ("raw",), None),
        ("HYV4MTPModel", "cuda", "stateful-step", ("normed",), None),
        ("EagleCohereForCausalLM", "cpu", "embedding-as-head", None, None),
        ("MiMoMTPModel", "cpu", "head-as-argument", ("normed",), None),
        ("EagleLlamaForCausalLM", "rocm", "flat", ("raw", "raw"), "equivalent"),
        ("ExtractHiddenStatesModel", "rocm", "no-logits", None, None),
        ("DeepSeekV4MTPModel", "cpu", "stub", None, None),
    ],
)
def test_a_family_is_what_vllm_made_it(
    release: Release,
    version: str,
    architecture: str,
    platform: str,
    shape: str,
    returns: tuple[str, ...] | None,
    equivalence: str | None,
) -> None:
    coverage = _audited(release, version)
    head = _head(coverage, architecture, platform)
    assert head.shape == shape
    if returns is not None:
        assert tuple(position.partition(" ")[0] for position in head.returns) == returns
    if equivalence != "same":
        assert head.equivalence == equivalence


def test_the_norms_of_deepseek_are_the_shared_head_s_own(release: Release) -> None:
    coverage = _audited(release, "0.33.0")
    norm = "layers[spec_step_idx].shared_head.norm"
    pre = _head(coverage, "DeepSeekMTPModel", "rocm")
    assert pre.logits is not None
    assert pre.logits.brief == f"layers[spec_step_idx].shared_head.head ∘ {norm}"
    assert pre.returns == ("raw", f"normed by {norm}")
    post = _head(coverage, "DeepseekV32MTPModel", "cuda")
    assert post.logits is not None
    assert post.logits.brief == "layers[spec_step_idx].shared_head.head"
    assert post.returns == (f"normed by {norm}", f"normed by {norm}")


@pytest.mark.parametrize("version", ["0.32.0", "0.33.0"])
def test_a_method_that_ignores_suppressed_tokens_is_found(release: Release, version: str) -> None:
    coverage = _audited(release, version)
    row = _row(coverage, "Gemma4MTPModel", "rocm")
    assert (row.verdict, row.equivalence) == ("unsafe", "different")
    assert row.reason is not None
    assert "_suppress" in row.reason
    head = _head(coverage, "Gemma4MTPModel", "rocm")
    assert "assert self.masked_embedding is not None" in {step.text for step in head.remarks}


@dataclass(frozen=True)
class Patched:
    """A tree in which some files say something else."""

    tree: Tree
    changed: Mapping[str, bytes]

    def files(self) -> frozenset[str]:
        return self.tree.files()

    def read(self, path: str) -> bytes:
        return self.changed.get(path) or self.tree.read(path)


Edit = tuple[ast.AST, str]


def _other_head(call: ast.Call) -> Iterator[Edit]:
    head = call.args[0]
    if isinstance(head, ast.Attribute):
        yield head, f"{ast.unparse(head)}_of_another_layer"


def _no_norm(call: ast.Call) -> Iterator[Edit]:
    hidden = call.args[1]
    if isinstance(hidden, ast.Call):
        inner = next(arg for arg in hidden.args if "hidden_states" in ast.unparse(arg))
        yield hidden, ast.unparse(inner)


def _edits(function: ast.FunctionDef, kind: str) -> Iterator[Edit]:
    """What to write in place of which nodes of a method that gives the top tokens."""
    of_call = {"head": _other_head, "norm": _no_norm}
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(attr="get_top_tokens", value=owner)) if (
                kind in of_call and "logits_processor" in ast.unparse(owner)
            ):
                yield from of_call[kind](node)
            case ast.Name(id="spec_step_idx", ctx=ast.Load()) if kind == "step":
                yield node, "0"
            case ast.BinOp(op=ast.Add(), left=left, right=ast.Subscript()) if kind == "remap":
                yield node, ast.unparse(left)


def _mutated(source: bytes, kind: str) -> bytes | None:
    """The file with every ``get_top_tokens`` in it changed, or None where nothing applies."""
    edits = [
        edit
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == "get_top_tokens"
        for edit in _edits(node, kind)
    ]
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for node, text in sorted(edits, key=lambda edit: -starts[edit[0].lineno - 1]):  # type: ignore[attr-defined]
        first = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        last = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        source = source[:first] + text.encode() + source[last:]
    return source if edits else None


def _proven(coverage: Coverage) -> Iterator[tuple[Row, Head]]:
    """One row for each class whose method is proven equivalent."""
    seen: set[str] = set()
    for row in coverage.rows:
        head = _head(coverage, row.architecture, row.platform) if row.class_ else None
        if head is not None and row.equivalence == "equivalent" and head.class_ not in seen:
            seen.add(head.class_)
            yield row, head


def _files_of(row: Row, head: Head) -> set[str]:
    """The files that the method's own steps stand in."""
    assert head.tokens is not None
    hops = {step.path for way in head.tokens.ways for step in way.hops}
    return hops | {step.path for step in row.evidence if step.kind == "method"}


@pytest.mark.parametrize("kind", ["head", "norm", "step", "remap"])
def test_a_proven_method_with_something_left_out_is_different(release: Release, kind: str) -> None:
    source = release("0.33.0")
    tried = 0
    for row, head in _proven(_audited(release, "0.33.0")):
        changed = {
            path: new
            for path in _files_of(row, head)
            if (new := _mutated(source.tree.read(path), kind)) is not None
        }
        if not changed or not _matters(kind, head):
            continue
        tried += 1
        patched = replace(source, tree=Patched(source.tree, changed))
        request = Request((row.platform,), (row.architecture,), run_imports=False)
        (found,) = audit(patched, request, Resources(None, 1)).rows
        assert (found.equivalence, found.verdict) == ("different", "unsafe"), row.architecture
    assert tried >= {"head": 20, "norm": 2, "step": 4, "remap": 8}[kind]


def _matters(kind: str, head: Head) -> bool:
    """Whether what is left out is something that the logits of this class go through."""
    assert head.logits is not None
    ways = head.logits.ways
    if kind == "step":
        return any("spec_step_idx" in (way.head or "") for way in ways)
    if kind == "remap":
        return any(post.startswith("remap") for way in ways for post in way.post)
    return True
