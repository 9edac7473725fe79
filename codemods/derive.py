"""Head path to the method that reduces it, or the reason why there is none.

``get_top_tokens`` is the argmax of ``compute_logits`` with the argmax pushed through the head. So
the method is ``compute_logits`` itself, with the call of the logits processor turned into the one
that gives tokens; where ``compute_logits`` only forwards to a part of the model, the method
forwards likewise, and the part gets one of its own. Nothing here knows a class by its name.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from itertools import takewhile

import msgspec

from auditor.analysis import Analysis
from auditor.classes import Found, lookup
from auditor.headpath.bodies import SourceBodies
from auditor.headpath.brief import brief
from auditor.headpath.equivalence import compare
from auditor.headpath.path import Branch, HeadPath, Post, head_path
from auditor.headpath.symbolic import Symbolic
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.heads import head_rule
from auditor.values import ClassValue, Place
from codemods.chain import Chain, Link
from codemods.docs import paragraphs
from codemods.factoring import factor_of
from codemods.plans import (
    Action,
    AddMethod,
    AddMixin,
    Code,
    Derivation,
    Edit,
    Parameter,
    Refusal,
    Refused,
    Site,
)
from codemods.reads import idle, keeps_on_self, other_use


class Tree(msgspec.Struct, frozen=True):
    """What a derivation must know of the tree beside the class.

    Attributes:
        bodies: the bodies of classes of the run.
        capability: what is asked for.
        mixin: the class that provides it, where the tree has one.
        is_target: whether a class is one that the registry has for a target model.
        is_draft: whether a class is one that the registry has for a draft model.
        passes_more: a call of the engine that hands the method more than the mixin's takes.
        step: the argument for the draft step, where a caller of this architecture passes it.
    """

    bodies: SourceBodies
    capability: Capability
    mixin: ClassValue | None
    is_target: Callable[[ClassValue], bool]
    is_draft: Callable[[ClassValue], bool]
    passes_more: Place | None
    step: str = ""


def derive(analysis: Analysis, tree: Tree) -> Derivation | Refusal:
    """What gives the analysed class the capability."""
    try:
        return _Derive(analysis, tree).derivation()
    except Refused as refused:
        return refused.refusal


def complete(analysis: Analysis, tree: Tree) -> Derivation | None:
    """What a class with the capability lacks on the way to the head: a patch that is half there.

    None where every method that it forwards to is there, or the way is not known.
    """
    try:
        return _Derive(analysis, tree).completion()
    except Refused:
        return None


class _Derive:
    def __init__(self, analysis: Analysis, tree: Tree) -> None:
        self._cls = analysis.cls
        self._analysis = analysis
        self._tree = tree
        self._symbolic = Symbolic(analysis.cls, tree.bodies, head_rule())
        self._agrees = tree.capability.agrees_with or ""
        self._methods = tree.capability.name, self._agrees
        self._place = Place(self._cls.module.path, self._cls.facts.line)

    def derivation(self) -> Derivation:
        """Raises :class:`Refused`."""
        path = self._followed()
        name = self._tree.capability.name
        links = Chain(self._symbolic, self._tree.bodies, self._agrees, name).links(path)
        first = next(b.head_term for b in path.branches if b.head_term is not None)
        place = first.place or self._place
        self._refuse_reads(path, links)
        keeps = any(keeps_on_self(link.function) for link in links)
        if not keeps and self._can_name_mixin(links[0]) and self._mixin_fits(path):
            if self._tree.is_target(self._cls):
                self._refuse_target(self._cls)
            edit = AddMixin(site_of(self._root(links[0])), self._mixin().dotted)
            why = f"`{brief(path)}` is what {self._mixin().qualname} computes"
            return Derivation("mixin", "mixin", (edit,), path.show(), brief(path), place, why)
        self._refuse_changes(path, mixin_only=False)
        needed = takewhile(lambda link: not link.has_already, links)
        edits = tuple(self._method(link, links, path) for link in needed)
        action, form = self._form(links, edits)
        why = self._why(brief(path), path, links)
        return Derivation(action, form, edits, path.show(), brief(path), place, why)

    def completion(self) -> Derivation | None:
        """Raises :class:`Refused`."""
        path = self._followed()
        self._refuse_changes(path, mixin_only=False)
        name = self._tree.capability.name
        links = Chain(self._symbolic, self._tree.bodies, self._agrees, name).links(path)
        self._refuse_reads(path, links)
        edits = tuple(self._method(link, links, path) for link in links if not link.has_already)
        if not edits or not links[0].has_already:
            return None
        first = next(b.head_term for b in path.branches if b.head_term is not None)
        why = f"{links[0].owner.qualname} forwards to a method that is not there"
        shown = path.show(), brief(path)
        return Derivation("method", "missing half", edits, *shown, first.place or self._place, why)

    def _followed(self) -> HeadPath:
        """The head path, all of which must be known."""
        path = self._analysis.logits
        if self._analysis.shape is not None and self._analysis.shape.special == "stub":
            raise _refused("stub", "the class only raises NotImplementedError", self._place)
        if path is None:
            raise _refused("no-logits", f"the class has no {self._agrees}", self._place)
        for branch in path.branches:
            for unknown in branch.unknown:
                raise _refused("unknown-term", unknown.reason, unknown.place or self._place)
        if not any(branch.head_term for branch in path.branches):
            reason = f"{self._agrees} gives {path.show()}, and calls no logits processor"
            raise _refused("no-head", reason, self._place)
        self._refuse_changes(path, mixin_only=True)
        self._refuse_norms()
        return path

    def _refuse_norms(self) -> None:
        """Refuse a head path that norms twice: a method would repeat what looks like a fault."""
        norms = self._analysis.convention
        if norms is None or norms.verdict != "double":
            return
        where = norms.positions[0].where if norms.positions else None
        reason = f"forward returns states {norms.positions[0]}, and {self._agrees} norms again"
        raise _refused("norm-convention", reason, where or self._place)

    def _refuse_changes(self, path: HeadPath, mixin_only: bool) -> None:
        """Refuse what happens to the logits afterwards; a remap only where no mixin knows it."""
        for branch, post in ((b, post) for b in path.branches for post in b.post):
            if post.kind in ("mask", "change"):
                raise _refused("logits-changed", _changed(branch, post), _end(branch, self._place))
            if not mixin_only:
                reason = f"{post.kind}: {post.text} comes after the head"
                raise _refused("post-processing", reason, _end(branch, self._place))

    @staticmethod
    def _refuse_reads(path: HeadPath, links: tuple[Link, ...]) -> None:
        """Refuse logits that are used on the way back: token ids would be used instead.

        Steps after the head are uses too. Those are compared with what the mixin does, and
        :meth:`_refuse_changes` lets no method have them.
        """
        if any(branch.post for branch in path.branches):
            return
        for link in links:
            use = other_use(link.function, link.calls, idle(link.function, link.calls))
            if use is not None:
                does = "checks" if isinstance(use, ast.Assert) else "uses"
                reason = f"{link.owner.qualname}.{link.function.name} {does} the logits it computes"
                where = Place(link.owner.module.path, use.lineno)
                text = ast.unparse(use).partition("\n")[0]
                raise _refused("logits-changed", f"{reason}: {text}", where)

    # The mixin

    def _mixin(self) -> ClassValue:
        assert self._tree.mixin is not None
        return self._tree.mixin

    def _can_name_mixin(self, link: Link) -> bool:
        """Whether the name of the mixin is free, or stands for it, in the module of the edit."""
        mixin, cls = self._tree.mixin, self._root(link)
        if mixin is None or mixin.qualname not in cls.module.names:
            return mixin is not None
        return self._tree.bodies.named(cls, mixin.qualname) is mixin

    def _mixin_fits(self, path: HeadPath) -> bool:
        """Whether the mixin's method picks the same token, and takes what the engine passes."""
        mixin = self._tree.mixin
        if mixin is None or self._tree.step or any(branch.checks for branch in path.branches):
            return False
        function = self._tree.bodies.functions(mixin).get(self._tree.capability.name)
        if function is None or (self._takes_more(function) and self._tree.passes_more is not None):
            return False
        first = self._symbolic.first_parameter(self._agrees)
        tokens = head_path(function.name, self._symbolic.run_method(mixin, function, first))
        return compare(path, tokens).answer == "equivalent"

    def _takes_more(self, function: ast.FunctionDef) -> bool:
        """Whether ``compute_logits`` has parameters that the mixin's method has not."""
        found = lookup(self._cls, self._agrees)
        own = self._tree.bodies.functions(found.owner) if isinstance(found, Found) else {}
        return _names(own[self._agrees]) != _names(function) if self._agrees in own else True

    # Methods

    def _root(self, link: Link) -> ClassValue:
        """Where the outermost edit goes: the class that has ``compute_logits``, or the draft."""
        owner = link.owner
        shared = owner is not self._cls and not self._tree.is_draft(owner)
        return self._cls if shared or self._tree.is_target(owner) else owner

    def _method(self, link: Link, links: tuple[Link, ...], path: HeadPath) -> AddMethod:
        site = site_of(link.owner)
        if link is links[0]:
            site = site_of(self._root(link))
            if self._tree.is_target(self._cls):
                self._refuse_target(self._cls)
        elif self._tree.is_target(link.owner):
            self._refuse_target(link.owner)
        if site.dotted != link.owner.dotted:
            self._need_names(link)
        factor = factor_of(link, self._symbolic, self._tree.bodies)
        return AddMethod(
            site=site,
            name=self._tree.capability.name,
            origin=site_of(link.owner),
            source=link.function.name,
            line=link.function.lineno,
            spots=link.spots,
            extra=self._extra(link, links),
            doc=paragraphs(link, path, factor, self._analysis.convention, *self._methods),
            factor=factor,
            dropped=tuple(stmt.lineno for stmt in idle(link.function, link.calls)),
        )

    def _extra(self, link: Link, links: tuple[Link, ...]) -> tuple[Parameter, ...]:
        """The draft step, where a caller passes it and ``compute_logits`` does not take it.

        Nothing but the outermost method is called by the engine.
        """
        step = self._tree.step
        arguments = link.function.args
        if not step or link is not links[0] or arguments.kwarg or step in _names(link.function):
            return ()
        return (Parameter(step, "int", "0"),)

    def _refuse_target(self, cls: ClassValue) -> None:
        where = Place(cls.module.path, cls.facts.line)
        reason = f"{cls.qualname} computes the logits, and the registry has it for a target model"
        raise _refused("target-class", reason, where)

    def _need_names(self, link: Link) -> None:
        """A method that is written out in another module needs the same names there."""
        bound = {arg.arg for arg in ast.walk(link.function) if isinstance(arg, ast.arg)}
        bound |= {n.id for n in _name_nodes(link.function) if isinstance(n.ctx, ast.Store)}
        for node in _name_nodes(link.function):
            if node.id in bound or node.id in _BUILTINS:
                continue
            theirs = self._tree.bodies.named(link.owner, node.id)
            ours = self._tree.bodies.named(self._cls, node.id)
            if theirs is not ours and theirs != ours:
                where = Place(link.owner.module.path, node.lineno)
                reason = f"{node.id} is not the same in {self._cls.module.name}"
                raise _refused("names-not-there", reason, where)

    @staticmethod
    def _form(links: tuple[Link, ...], edits: tuple[Edit, ...]) -> tuple[Action, str]:
        if len(links) == 1:
            return "method", "method"
        if any(isinstance(edit, AddMethod) and edit.factor is not None for edit in edits):
            return "pair", "forwarding pair with factored pre-head"
        return "pair", "forwarding pair" if len(edits) > 1 else "forwarding method"

    def _why(self, shown: str, path: HeadPath, links: tuple[Link, ...]) -> str:
        owner = links[-1].owner.qualname
        if len(links) > 1:
            return f"`{shown}` belongs to {owner}, which the draft forwards to"
        if self._tree.step:
            return f"{owner} computes `{shown}`, and a caller passes {self._tree.step}"
        if self._tree.mixin is None:
            return f"{owner} computes `{shown}`, and the tree has no mixin for it"
        if any(branch.checks for branch in path.branches):
            return f"{owner} checks something before `{shown}`, and the mixin does not"
        if not self._can_name_mixin(links[0]):
            name = self._mixin().qualname
            return f"{owner} computes `{shown}`, and {name} is another thing in its module"
        return f"{owner} computes `{shown}`, which is not what the mixin does or takes"


_BUILTINS = frozenset(dir(builtins))


def site_of(cls: ClassValue) -> Site:
    """Where a class stands."""
    return Site(cls.module.path, cls.qualname, cls.facts.line, cls.dotted)


def _refused(code: Code, reason: str, place: Place) -> Refused:
    return Refused(Refusal(code, reason, place))


def _changed(branch: Branch, post: Post) -> str:
    guards = "".join(" on a condition" for _ in branch.guards[:1])
    return f"after the head{guards}: {post.text}"


def _end(branch: Branch, default: Place) -> Place:
    return getattr(branch.result, "place", None) or default


def _names(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _name_nodes(function: ast.FunctionDef) -> list[ast.Name]:
    return [node for node in ast.walk(function) if isinstance(node, ast.Name)]
