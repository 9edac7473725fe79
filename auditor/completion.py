"""What a shell offers for a word that is not typed to its end (click's completion).

Only what is at hand is offered: names of the rules, and the registry of a folder. Nothing is
fetched, and what cannot be read offers nothing; the command itself says what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_Offer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def listed(known: Callable[[], Sequence[str]]) -> _Offer:
    """Names of a closed set, in a list separated by commas; those that are there already not."""

    def offer(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        before, comma, word = incomplete.rpartition(",")
        there = before.split(",")
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in known()
            if name.startswith(word) and name not in there
        ]

    return offer


def codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Codes of the rules, with what they mean."""
    from click.shell_completion import CompletionItem

    from auditor.ruleset.codes import coded_rules

    return [
        CompletionItem(rule.code, help=rule.what)
        for rule in coded_rules()
        if rule.code.startswith(incomplete.upper())
    ]


def architectures(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Architectures of the registry in the folder that the command would audit."""
    from click.shell_completion import CompletionItem

    names = sorted(set(_registered(_folder(ctx))))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _folder(ctx: click.Context | None) -> Path | None:
    """The folder that ``--vllm`` names, or the checkout around the working directory."""
    from auditor.sources.folder import package_root
    from auditor.sources.open import checkout_around

    spec = None
    while ctx is not None and spec is None:
        spec, ctx = ctx.params.get("vllm"), ctx.parent
        # The group takes several.
        spec = next(iter(spec), None) if isinstance(spec, tuple) else spec
    if spec is None:
        return checkout_around(Path.cwd())
    return package_root(Path(os.path.expanduser(spec)).absolute())


def _registered(folder: Path | None) -> Iterator[str]:
    """The keys of the table where it is written as a dict; others are not worth an import run."""
    import ast

    from auditor.ruleset.engine import engine_rule

    module, _, table = engine_rule().draft.table.rpartition(".")
    if folder is None:
        return
    try:
        tree = ast.parse((folder / f"{module.replace('.', '/')}.py").read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if table in names and isinstance(value, ast.Dict):
            yield from (
                key.value
                for key in value.keys
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            )
