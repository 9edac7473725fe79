"""The spellings of ``--vllm`` that are not a path as it stands, and what to say of the others."""

from __future__ import annotations

import os
import re
from pathlib import Path

from auditor.errors import SourceError

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_REQUIREMENT = re.compile(r"vllm\s*(?:===?|[-@])\s*v?(\d[\w.+!]*)", re.IGNORECASE)
_FORMS = "a folder, an archive, PATH@REVISION, installed, latest or a version such as 0.30.0"


def split_revision(spec: str, cwd: Path) -> tuple[Path, str] | None:
    """The folder and the revision of ``PATH@REVISION``, or None when ``spec`` is not of that form.

    Both may hold an ``@`` themselves (``HEAD@{1}``): the longest existing path counts. An empty
    path is ``cwd``.
    """
    for at in reversed([place for place, character in enumerate(spec) if character == "@"]):
        folder = cwd / os.path.expanduser(spec[:at])
        if folder.is_dir():
            return folder, spec[at + 1 :]
    return None


def unknown_spec(spec: str, cwd: Path) -> SourceError:
    """The error for a ``spec`` that names nothing: what it looked like and what to do."""
    from auditor.sources.archive import looks_like_archive

    where = f"--vllm {spec}"
    if not spec.strip() or "\0" in spec:
        return SourceError("this names nothing", where=where, next_step=f"Give {_FORMS}.")
    if _URL.match(spec):
        return SourceError(
            "this is a URL, and nothing is fetched from URLs",
            where=where,
            next_step="Download it and give the path, or give a version of the package index.",
        )
    requirement = _REQUIREMENT.fullmatch(spec)
    if requirement is not None and not looks_like_archive(spec):
        return SourceError(
            "this looks like a requirement",
            where=where,
            next_step=f"Give the version alone: --vllm {requirement.group(1)}",
        )
    return _missing_path(spec, cwd, where)


def _missing_path(spec: str, cwd: Path, where: str) -> SourceError:
    from auditor.sources.archive import looks_like_archive

    path = cwd / os.path.expanduser(spec)
    near = _similar_names(path)
    hint = f"Did you mean {', '.join(near)}? " if near else ""
    if "@" in spec and not looks_like_archive(spec):
        folder = spec.rpartition("@")[0]
        return SourceError(
            f"this looks like PATH@REVISION, but there is no folder {folder}",
            where=where,
            next_step="Check the path, or give @REVISION inside a checkout.",
        )
    if "/" in spec or os.sep in spec or looks_like_archive(spec):
        return SourceError(
            "there is no such file or folder", where=where, next_step=f"{hint}Check the path."
        )
    return SourceError(
        "this is no existing path, no version and no known word",
        where=where,
        next_step=f"{hint}Give {_FORMS}; a branch or tag of the checkout here is @{spec}.",
    )


def _similar_names(path: Path) -> list[str]:
    import difflib

    try:
        names = os.listdir(path.parent)
    except OSError:
        # The folder the path should be in is not there either: nothing to suggest.
        return []
    return difflib.get_close_matches(path.name, sorted(names), n=2, cutoff=0.7)
