"""Fingerprints of head paths: equal where two methods compute the same term.

What does not count is where the term stands, how it is written, what the method calls its locals
and its first parameter, in which file of the tree a function or class is defined, and in which
order a method asks for its conditions. A fingerprint is the same in every process and on every
version of Python, so that it can be kept in a file and compared with one that is made later.
"""

from __future__ import annotations

import hashlib
import re

from auditor.headpath.path import Branch, HeadPath
from auditor.headpath.terms import (
    Apply,
    Changed,
    Constant,
    Global,
    Logits,
    Module,
    Operation,
    Param,
    Part,
    Term,
    TopTokens,
    Unknown,
)
from auditor.ruleset.target import target

#: Hexadecimal digits of a fingerprint: 64 bits, for a few hundred paths.
_DIGITS = 16
_POSITION = re.compile(r"(?<=\S):\d+\b")


def fingerprint(path: HeadPath, first: str | None = None) -> str:
    """The fingerprint of every way through a method that returns something.

    Args:
        path: the head path.
        first: how its terms name the first parameter, the hidden states.
    """
    digests = _Digests(first)
    ways = sorted({digests.way(branch) for branch in path.branches})
    return _hashed("ways", *ways)[:_DIGITS]


class _Digests:
    """Digests of terms, from the innermost outwards; a shared part is computed once."""

    def __init__(self, first: str | None) -> None:
        self._first = first
        # By identity, with the term kept alive: hashing a term would walk all of it.
        self._known: dict[int, tuple[Term, str]] = {}

    def way(self, branch: Branch) -> str:
        """The digest of one way: what it returns, under which conditions."""
        # An assertion is a condition of going on, not a choice between two ways.
        guards = {
            _hashed(str(guard.holds), self.of(guard.test))
            for guard in branch.guards
            if not guard.asserted
        }
        return _hashed("way", self.of(branch.result), *sorted(guards))

    def of(self, term: Term) -> str:
        """The digest of a term."""
        known = self._known.get(id(term))
        if known is None:
            parts = map(self.of, _in_order(term))
            digest = _hashed(type(term).__name__, *self._own(term), "of", *parts)
            known = self._known[id(term)] = (term, digest)
        return known[1]

    def _own(self, term: Term) -> tuple[str, ...]:
        """What a term says beside its parts."""
        match term:
            case Param(name=name):
                return ("first",) if name == self._first else ("named", name)
            case Constant(value=value):
                return type(value).__name__, repr(value)
            case Global(name=name):
                return (_without_module(name),)
            case Part(name=name) | Operation(name=name):
                return (name,)
            case Apply(arguments=arguments, keywords=keywords):
                return str(len(arguments)), *sorted(key for key, _ in keywords)
            case Module(label=label):
                return (_without_module(label),)
            case Logits(bias=bias) | TopTokens(bias=bias):
                return (str(bias is not None),)
            case Changed(method=method):
                return (method,)
            case Unknown(reason=reason):
                return (_POSITION.sub("", reason),)
            case _:
                return ()


def _in_order(term: Term) -> tuple[Term, ...]:
    """The parts of a term; keywords in the order of their names, since no call depends on it."""
    if not isinstance(term, Apply):
        return term.parts()
    keywords = sorted(term.keywords, key=lambda pair: pair[0])
    return (term.function, *term.arguments, *(value for _, value in keywords))


def _without_module(name: str) -> str:
    """A name of the tree without the module that defines it, which a move to a file changes."""
    in_tree = name.startswith(f"{target().package.name}.")
    return name.rpartition(".")[2] if in_tree else name


def _hashed(*texts: str) -> str:
    """One digest of texts; the length of each is part of it, so that none runs into the next."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogateescape")
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()
