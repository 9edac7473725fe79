"""How rule files are found and loaded: those of the project, with those of a user laid over them.

The folder ``rules/`` stands beside the packages in a checkout, and inside the ``auditor`` package
in an installed wheel, since ``rules`` as a top-level package name belongs to another project.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from auditor.errors import RuleError
from auditor.ruleset import parsing

_Rule = TypeVar("_Rule")


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule: a key that is not known is an error, not a silent no-op."""


#: A folder with rules of a user, with a digest of them: by both, what is read there is kept.
Folder = tuple[Path, bytes]

#: Those that are laid over the rules of the project.
_OVER: ContextVar[tuple[Folder, ...]] = ContextVar("rules of a user", default=())


@cache
def rules_folder() -> Path:
    """The folder that holds the rules, in a checkout or in an installed package.

    Raises:
        RuleError: the installation is incomplete.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "rules", package.parent / "rules"):
        if (folder / "vllm.toml").is_file():
            return folder
    raise RuleError(
        "the rules folder is missing", where=package.name, next_step="Reinstall draftaudit."
    )


@contextmanager
def laid_over(folders: Sequence[str | Path]) -> Iterator[None]:
    """Within this, rules are those of the project and those of these folders."""
    known = dict(_OVER.get())
    known.update((Path(folder), digest_over([folder])) for folder in folders)
    token = _OVER.set(tuple(known.items()))
    try:
        yield
    finally:
        _OVER.reset(token)


def folders_over() -> tuple[Folder, ...]:
    """The folders with rules of a user that count here."""
    return _OVER.get()


def texts_in_force() -> Iterator[bytes]:
    """The text of every rule file that counts here."""
    for root in (rules_folder(), *(path for path, _ in folders_over())):
        for path in sorted(root.rglob("*.toml")):
            yield path.read_bytes()


def digest_over(folders: Sequence[str | Path]) -> bytes:
    """A digest of the rules in these folders; empty without one."""
    files = [path for folder in folders for path in sorted(Path(folder).rglob("*.toml"))]
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        digest.update(f"{path.parent.name}/{path.name}\0".encode())
        digest.update(path.read_bytes())
    return digest.digest() if files else b""


def load(path: Path, type_: type[_Rule]) -> _Rule:
    """Read one rule file.

    Raises:
        RuleError: the file cannot be read, is not TOML, or not what ``type_`` says; the message
            names file, line and key.
    """
    name = shown(path)
    return parsing.read(parsing.text_of(path, name), type_, name)


def shown(path: Path) -> str:
    """What a message calls a rule file; one of the project's, by its path below ``rules/``."""
    own = path.is_relative_to(rules_folder())
    return (path.relative_to(rules_folder().parent) if own else path).as_posix()


def load_all(kind: str, type_: type[_Rule], over: Iterable[Folder]) -> Iterator[_Rule]:
    """Every rule of a kind: those of the project, then those of each folder over them.

    Raises:
        RuleError: as :func:`load`.
    """
    for path in rule_files(kind, over):
        yield load(path, type_)


def rule_files(kind: str, over: Iterable[Folder] = ()) -> Iterator[Path]:
    """The files below ``rules/kind/``, sorted, then those of each folder over it."""
    for root in (rules_folder(), *(path for path, _ in over)):
        yield from sorted((root / kind).glob("*.toml"))
