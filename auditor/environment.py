"""What exists on a platform, read off the tree where the tree says it.

* ``requirements/<platform>.txt``, with its ``-r`` includes, names the distributions that an
  installation brings; ``rules/distributions.toml`` says which modules a distribution provides.
* ``setup.py`` says which extension modules are built for which target device. It is evaluated by
  an import run, as any other module, and never executed.
* A distribution that another platform's file lists and this one's does not, or that only an extra
  of ``setup.py`` brings, is missing.

A wheel has neither file; then the lists in ``rules/platforms/`` speak, and so they do for what no
file says. What nothing says stays undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from auditor import facts as f
from auditor.evaluation.import_statements import Conventions, Program
from auditor.imports import ImportRun
from auditor.platforms import Installed, Platform
from auditor.program import Files
from auditor.rulesdata import DistributionRule, PlatformRule, VendoredRule
from auditor.values import Either, Instance, PythonError, Value

_SETUP = "setup.py"
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
    ) -> None:
        self._files = files
        self._paths = paths
        self._conventions = conventions
        self._distributions = {rule.name: rule for rule in distributions}
        self._vendored = {rule.extension: rule for rule in vendored}
        self._listed: dict[str, dict[str, str]] = {}
        self._versions: dict[str, dict[str, str]] = {}

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
        return Installed(present, missing, self._versions.get(rule.name, {}))

    def has_setup(self) -> bool:
        """Whether the tree has the ``setup.py`` that says which extensions are built."""
        return _SETUP in self._paths

    # --- distributions

    def _modules(self, distributions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The modules that distributions provide, each with the line that lists it."""
        for name, where in distributions.items():
            rule = self._distributions.get(name)
            fact = where if " lists " in where else f"{where} lists {name}"
            for module in rule.modules if rule else (name.replace("-", "_"),):
                yield module, fact

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
        if path in seen or path not in self._paths:
            return
        seen.add(path)
        source = self._files.source(path)
        if isinstance(source, f.Unparsed):
            return
        for number, line in enumerate(source.decode("utf-8", "replace").splitlines(), start=1):
            text = re.sub(r"(^|\s)#.*", "", line).strip()
            include = re.match(r"(?:-r|--requirement)[\s=]*(\S+)", text)
            if include:
                folder = path.rpartition("/")[0]
                self._read_requirements(_joined(folder, include[1]), found, versions, seen)
            elif text and not text.startswith("-"):
                listed = _distribution(text)
                if listed is not None:
                    found.setdefault(listed[0], f"{path}:{number}")
                    versions.setdefault(*listed)

    # --- extension modules

    def _extensions(self, rule: PlatformRule) -> Iterator[tuple[str, str]]:
        """Extension modules that ``setup.py`` builds there, and packages that come with them."""
        if not self.has_setup() or rule.target_device is None:
            return
        facts = self._files.facts(_SETUP)
        if isinstance(facts, f.Unparsed):
            return
        for name in self._built(facts, rule):
            fact = f"{_SETUP} builds {name} for {rule.target_device}"
            vendored = self._vendored.get(name)
            if vendored is None or vendored.compiled:
                yield name, fact
            for module in vendored.provides if vendored else ():
                yield module, f"{_SETUP} installs {module} with {name} for {rule.target_device}"

    def _built(self, facts: f.ModuleFacts, rule: PlatformRule) -> tuple[str, ...]:
        """Names in ``ext_modules`` after ``setup.py`` has run for a target device."""
        program = Program(
            {"setup": (_SETUP, False)}, frozenset(), lambda _: facts, self._files.function
        )
        conventions = Conventions(
            frozenset({"setup"}), "", self._conventions.constants, self._conventions.python
        )
        platform = Platform(rule.name, {}, {}, assumed=rule.build, everything=True)
        run = ImportRun(program, platform, conventions)
        try:
            module = run.load("setup")
            extensions, _ = run.get(module, "ext_modules", [])
        except PythonError:
            return ()
        return tuple(dict.fromkeys(_names(extensions)))


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
