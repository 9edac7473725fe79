"""The platforms of a request, with the user's options and what a plugin makes of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from auditor.environment import Environment
from auditor.errors import UsageError
from auditor.evaluation.import_statements import Conventions, Program
from auditor.platforms import Platform, build
from auditor.request import Request
from auditor.ruleset.distributions import ModuleRule
from auditor.ruleset.platforms import PlatformRule, platform_names, platforms

if TYPE_CHECKING:
    from auditor.plugins.session import Session


class AskedPlatforms:
    """Builds the platforms that are asked for.

    Args:
        request: what is asked, with the user's options.
        environment: what the tree says of what is installed on each.
        program: the modules of the tree.
        conventions: what the import run must know of it.
        plugins: plugins over it; one may give a platform of its own.
    """

    def __init__(
        self,
        request: Request,
        environment: Environment,
        program: Program,
        conventions: Conventions,
        plugins: Session | None,
    ) -> None:
        self._request = request
        self._environment = environment
        self._program = program
        self._conventions = conventions
        self._plugins = plugins

    def __iter__(self) -> Iterator[Platform]:
        """Each platform, in the order of reports; a plugin's own platform where it gives one.

        Raises:
            UsageError: a platform is asked for that nothing knows.
        """
        asked = self._request.platforms or tuple(self._provided)
        known = (*platform_names(), *self._provided)
        for name in asked:
            if name not in known:
                raise _no_such_platform(name, known)
        for rule in platforms():
            if not asked or rule.name in asked:
                yield self._built(rule, self._options)
        for name, (rule, needs) in self._provided.items():
            if name in asked:
                yield self._built(rule, (*self._options, *needs))

    @cached_property
    def _options(self) -> tuple[ModuleRule, ...]:
        """The modules that the user takes to be there or missing."""
        return tuple(
            ModuleRule(names, exist, reason)
            for names, exist, reason in (
                (self._request.without_modules, False, "--without"),
                (self._request.with_modules, True, "--with"),
            )
            if names
        )

    def _built(self, rule: PlatformRule, modules: tuple[ModuleRule, ...]) -> Platform:
        """A platform with what is installed on it."""
        installed = self._environment.installed(rule, platforms())
        assume, env = self._request.assume, self._request.env
        if self._plugins is not None:
            modules = (*modules, *self._plugins.modules(self._environment.modules_of))
        return build(rule, assume, env, modules, installed, self._request.failing_modules)

    @cached_property
    def _provided(self) -> Mapping[str, tuple[PlatformRule, tuple[ModuleRule, ...]]]:
        """The platform that a plugin gives, with the modules that it needs; asked for once."""
        if self._plugins is None:
            return {}
        from auditor.plugins.platform import needed, platform_rule

        # Nothing is known of a platform before it is given.
        blank = msgspec.structs.replace(platforms()[-1], attributes={}, predicates={})
        unknown = self._built(blank, self._options)
        found = self._plugins.provider(self._program, unknown, self._conventions)
        if found is None:
            return {}
        run, plugin, given = found
        assert given.cls is not None
        if any(rule.name == plugin.name for rule in platforms()):
            raise UsageError(
                f"{plugin.label} gives a platform, and is called like a built-in one",
                where="--plugin",
                next_step="Give the project another name.",
            )
        rule = platform_rule(run, given.cls, plugin.name, plugin.label, platforms())
        return {plugin.name: (rule, needed(given.needs, plugin.label))}


def _no_such_platform(name: str, known: tuple[str, ...]) -> UsageError:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return UsageError(
        f"unknown platform {name!r}",
        where="--platform",
        next_step=f"{hint}Known: {', '.join(known)}.",
    )
