"""What exists on a platform, read off the tree where the tree says it.

* ``requirements/<platform>.txt``, with its ``-r`` includes, names the distributions that an
  installation brings; ``rules/distributions.toml`` says which modules a distribution provides.
* ``setup.py`` says which extension modules are built for which target device. It is evaluated by
  an import run, as any other module, and never executed.
* A distribution that another platform's file lists and this one's does not, or that only an extra
  of ``setup.py`` brings, is missing.

A wheel has neither file; then the record of that release speaks (:mod:`auditor.builds`), and for
what no file says the lists in ``rules/platforms/``. What nothing says stays undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from auditor import facts as f
from auditor.builds import RecordedBuild, counts, parsed
from auditor.evaluation.import_statements import Conventions, Program
from auditor.imports import ImportRun
from auditor.platforms import Installed, Platform, Watched
from auditor.program import Files
from auditor.ruleset.distributions import DistributionRule, ModuleRule, VendoredRule
from auditor.ruleset.platforms import PlatformRule
from auditor.values import Either, Instance, ModuleValue, PythonError, Value

_SETUP = "setup.py"
_COMMENT = re.compile(r"(^|\s)#.*")
_INCLUDE = re.compile(r"(?:-r|--requirement)[\s=]*(\S+)")
#: Markers are evaluated for the machine and release that vLLM's images use.
_MARKER = {"platform_machine": "x86_64", "sys_platform": "linux", "platform_system": "Linux",
           "os_name": "posix", "python_version": "3.12", "python_full_version": "3.12.0",
           "implementation_name": "cpython", "platform_python_implementation": "CPython",
           "extra": ""}  # fmt: skip


class Environment:
    """Answers for each platform from the requirement files and ``setup.py`` of one tree."""

    def __init__(
        self,
        files: Files,
        paths: frozenset[str],
        conventions: Conventions,
        distributions: tuple[DistributionRule, ...],
        vendored: tuple[VendoredRule, ...],
        version: str | None = None,
    ) -> None:
        self._files = files
        self._paths = paths
        self._conventions = conventions
        self._distributions = {rule.name: rule for rule in distributions}
        self._vendored = in_force(vendored, version)
        self._recorded = RecordedBuild(version)
        self._has_requirements = any(path.startswith("requirements/") for path in paths)
        self._listed: dict[str, dict[str, str]] = {}
        self._versions: dict[str, dict[str, str]] = {}
        self._failed: f.Unparsed | None = None

    def installed(self, rule: PlatformRule, rules: Iterable[PlatformRule]) -> Installed:
        """What the tree says of the platform of ``rule``; ``rules`` are all platforms."""
        own = self._requirements(rule)
        present = dict(self._modules(own))
        elsewhere: dict[str, str] = {}
        if own:
            for other in rules:
                for name, where in self._requirements(other).items():
                    elsewhere.setdefault(
                        name, f"{where} lists {name}, {rule.requirements[0]} does not"
                    )
        missing = {
            module: fact for module, fact in self._modules(elsewhere) if module not in present
        }
        for name, fact in self._extensions(rule):
            present[name] = fact
        return Installed(present, missing, self._versions.get(rule.name, {}), self.unread_build())

    def lines(self, path: str) -> tuple[str, ...]:
        """The lines of a requirement file without comments: the tree's, or the recorded ones."""
        if not self._has_requirements:
            return self._recorded.requirements(path) or ()
        source = self._files.source(path) if path in self._paths else b""
        if isinstance(source, f.Unparsed):
            return ()
        texts = (_COMMENT.sub("", line).strip() for line in _text(source).splitlines())
        return tuple(text for text in texts if text and (text[0] != "-" or _INCLUDE.match(text)))

    @staticmethod
    def includes(path: str, lines: Iterable[str]) -> Iterator[str]:
        """The files that the ``-r`` lines of a requirement file name."""
        folder = path.rpartition("/")[0]
        yield from (_joined(folder, match[1]) for line in lines if (match := _INCLUDE.match(line)))

    def modules_of(self, requirement: str) -> tuple[str, ...]:
        """The modules that a requirement brings; none where its marker does not hold."""
        listed = _distribution(requirement)
        return self._brings(listed[0]) if listed is not None else ()

    # --- distributions

    def _modules(self, distributions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The modules that distributions provide, each with the line that lists it."""
        # Those that bring many come first: a distribution for one module has the last word on it.
        for name in sorted(distributions, key=lambda name: (-len(self._brings(name)), name)):
            where = distributions[name]
            fact = where if " lists " in where else f"{where} lists {name}"
            for module in self._brings(name):
                yield module, fact

    def _brings(self, distribution: str) -> tuple[str, ...]:
        """The modules of a distribution."""
        rule = self._distributions.get(distribution)
        return rule.modules if rule else (distribution.replace("-", "_"),)

    def _requirements(self, rule: PlatformRule) -> dict[str, str]:
        """Distributions that a platform's file lists, with the place of each."""
        if rule.name not in self._listed:
            found: dict[str, str] = {}
            seen: set[str] = set()
            versions = self._versions.setdefault(rule.name, {})
            for path in rule.requirements:
                self._read_requirements(path, found, versions, seen)
            self._listed[rule.name] = found
        return self._listed[rule.name]

    def _read_requirements(
        self, path: str, found: dict[str, str], versions: dict[str, str], seen: set[str]
    ) -> None:
        if path in seen:
            return
        seen.add(path)
        lines = self.lines(path)
        # In one order, so that it does not matter whether the file or the record was read.
        for listed in sorted(filter(None, map(_distribution, lines))):
            found.setdefault(listed[0], path)
            versions.setdefault(*listed)
        for included in self.includes(path, lines):
            self._read_requirements(included, found, versions, seen)

    # --- extension modules

    def _extensions(self, rule: PlatformRule) -> Iterator[tuple[str, str]]:
        """Extension modules that ``setup.py`` builds there, and packages that come with them."""
        for name in self.built(rule):
            vendored = [one for one in self._vendored if one.extension == name]
            if all(one.compiled for one in vendored):
                yield name, f"{_SETUP} builds {name} for {rule.target_device}"
            for module in (module for one in vendored for module in one.provides):
                yield module, f"{_SETUP} installs {module} with {name} for {rule.target_device}"

    def unread_build(self) -> f.Unparsed | None:
        """Why ``setup.py`` does not say which extension modules are built, if it does not."""
        if _SETUP not in self._paths:
            return None
        facts = self._files.facts(_SETUP)
        return facts if isinstance(facts, f.Unparsed) else self._failed

    def built(self, rule: PlatformRule) -> tuple[str, ...]:
        """The extension modules that are built for a platform: by ``setup.py``, or as recorded."""
        if _SETUP not in self._paths:
            return self._recorded.extensions(rule.name)
        facts = self._files.facts(_SETUP)
        if isinstance(facts, f.Unparsed) or rule.target_device is None:
            return ()
        return self._names_in_setup(facts, rule)

    def _names_in_setup(self, facts: f.ModuleFacts, rule: PlatformRule) -> tuple[str, ...]:
        """Names in ``ext_modules`` after ``setup.py`` has run for a target device."""
        program = Program(
            {"setup": (_SETUP, False)}, frozenset(), lambda _: facts, self._files.function
        )
        conventions = Conventions(
            frozenset({"setup"}), "", self._conventions.constants, self._conventions.python
        )
        platform = Platform(rule.name, {}, {}, assumed=Watched(rule.build), everything=True)
        run = ImportRun(program, platform, conventions)
        try:
            module = run.load("setup")
            if isinstance(module, ModuleValue) and "ext_modules" not in module.names:
                return ()
            extensions, _ = run.get(module, "ext_modules", [])
        except PythonError as raised:
            error = raised.error
            reason = f"cannot be evaluated: {error.type}: {error.message}"
            self._failed = f.Unparsed(reason, error.chain[0].line if error.chain else 0)
            return ()
        if not isinstance(extensions, list | Either):
            self._failed = f.Unparsed("its ext_modules is not a list that can be read", 0)
        return tuple(dict.fromkeys(_names(extensions)))


def in_force(
    rules: Iterable[VendoredRule], version: str | None
) -> tuple[VendoredRule, ...]:  # fmt: skip
    """The rules that hold for a release."""
    return tuple(rule for rule in rules if counts(parsed(version), "", rule.until))


def without_built(
    paths: frozenset[str], vendored: Iterable[VendoredRule], generated: Iterable[ModuleRule]
) -> frozenset[str]:
    """The files of a tree but for those that a build puts there: a checkout has none of them.

    Whether such a module exists is a fact of the platform, not of the form a release comes in.
    """
    names = [name for rule in vendored for name in rule.provides]
    names += [name for rule in generated for name in rule.names]
    files = {f"{name.replace('.', '/')}.py" for name in names}
    folders = tuple(f"{name.replace('.', '/')}/" for name in names)
    return frozenset(
        path for path in paths if path not in files and not path.startswith(folders)
    )  # fmt: skip


def _text(source: bytes) -> str:
    return source.decode("utf-8", "replace")


def _names(value: Value) -> Iterator[str]:
    """``name`` of each extension; where a branch stayed open, those of all branches."""
    if isinstance(value, Either):
        for option in value.values():
            yield from _names(option)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item)
    elif isinstance(value, Instance):
        yield from (text for key, text in value.keywords if key == "name" and isinstance(text, str))


def _joined(folder: str, name: str) -> str:
    parts: list[str] = folder.split("/") if folder else []
    for part in name.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


@lru_cache(maxsize=1024)  # most lines stand in a file that every platform includes
def _distribution(text: str) -> tuple[str, str] | None:
    """Name and version specifier of a requirement that holds on the reference machine."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        # A line in pip's own syntax (a URL, an option behind it) still starts with its name.
        match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", text)
        return (canonicalize_name(match[0]), "") if match and "://" not in match[0] else None
    if requirement.marker is not None and not requirement.marker.evaluate(dict(_MARKER)):
        return None
    return canonicalize_name(requirement.name), str(requirement.specifier)
