"""One page for a browser: the matrix of one or several versions, and what is behind each cell.

The page is one file that asks the network for nothing. Its tables are in the markup, so that they
can be read and printed without a script; the details of the cells are JSON, which the script shows.

A template of Jinja puts it together, since its escaping leaves out nothing: a name of the audited
tree can say anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import combinations

import msgspec
from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from auditor.coverage import VERDICTS, Coverage
from auditor.errors import UsageError
from auditor.reports import html_chart as chart
from auditor.reports import html_data as data
from auditor.reports import html_view as page_view
from auditor.reports import rows as view
from auditor.reports.html_changes import Change, changes
from auditor.reports.text import literal

_FILES = resources.files("auditor.reports") / "html_page"

_TEMPLATES = ("page.html", "drift.html")

#: Runs before anything is drawn, so that nothing is drawn twice.
_EARLY = "document.documentElement.className='js'"


def render(coverages: Sequence[Coverage], *, only: Collection[str] = ()) -> str:
    """The page for at least one document; the newest version is the one that it opens with.

    Args:
        coverages: what to show; two that are the same count once.
        only: show the architectures that have one of these verdicts somewhere. The numbers of
            the platforms are those of the whole documents all the same.

    Raises:
        UsageError: there is no document, or they are about different methods.
    """
    ordered = page_view.in_order(_distinct(coverages))
    if len({coverage.capability for coverage in ordered}) != 1:
        raise UsageError("one page is about one method, and needs at least one source")
    called = page_view.names(ordered)
    shown = frozenset(
        name for coverage in ordered for name, _ in view.by_architecture(coverage, only)
    )
    pairs = {
        (a, b): _among(shown, changes(ordered[a], ordered[b]))
        for a, b in combinations(range(len(ordered)), 2)
    }
    since = [pairs.get((index - 1, index), ()) for index in range(len(ordered))]
    drawn = chart.charts(called, ordered)
    return _filled(
        pages=page_view.pages(called, ordered, since, shown),
        charts=drawn,
        key=chart.key(drawn),
        data=Markup(data.script_text(called, ordered, pairs, shown)),
        capability=ordered[0].capability,
        verdicts=_occurring(ordered, shown),
    )


def _distinct(coverages: Sequence[Coverage]) -> list[Coverage]:
    return list({msgspec.json.encode(one): one for one in coverages}.values())


def _among(shown: frozenset[str], found: Sequence[Change]) -> tuple[Change, ...]:
    return tuple(change for change in found if change.architecture in shown)


def _occurring(coverages: Sequence[Coverage], shown: frozenset[str]) -> dict[str, str]:
    """The verdicts on the page with their meaning, in the order of the legend."""
    found = {row.verdict for c in coverages for row in c.rows if row.architecture in shown}
    return {verdict: meaning for verdict, meaning in VERDICTS.items() if verdict in found}


def _filled(**what: object) -> str:
    scripts = {"early": Markup(_EARLY), "script": _text("page.js")}
    return filled("page.html", "style.css", scripts=scripts, **what)


def filled(
    template: str, style: str, *, scripts: Mapping[str, str] | None = None, **what: object
) -> str:
    """A page of this folder's files, with a policy that lets nothing else in.

    Args:
        template: the file of the page.
        style: the file of its style.
        scripts: what it runs, by the name that the template has for it.
        what: what the template names.
    """
    known = scripts or {}
    text, policy = _text(style), _policy([_text(style)], list(known.values()))
    page = _environment().get_template(template)
    return page.render(style=text, policy=policy, **known, **what)


@cache
def _environment() -> Environment:
    """Everything that is put into the template is escaped, and shown literally."""
    environment = Environment(
        loader=DictLoader({name: _text(name) for name in _TEMPLATES}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_literal,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["place"] = lambda item: view.place(item.path, item.line)
    environment.globals["classes"] = page_view.CLASSES
    environment.globals["nothing"] = view.NOTHING
    return environment


def _literal(value: object) -> object:
    return literal(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _text(name: str) -> Markup:
    """A file of the page; its own, so it is taken as it is."""
    return Markup((_FILES / name).read_text("utf-8"))


def _policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """The Content-Security-Policy: nothing but the page's own style and scripts, by their hash."""
    rules: Mapping[str, str] = {
        "default-src": "'none'",
        "style-src": " ".join(map(_hash, styles)),
        "script-src": " ".join(map(_hash, scripts)) or "'none'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
