"""The ``codemod`` command group, and ``draftaudit``, which holds both groups.

``draftaudit`` stands here because this package knows ``auditor`` and not the other way round.
Everything heavy is imported where it is used, so that ``codemod --help`` stays instant.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from auditor import __version__, completion
from auditor.errors import UsageError
from auditor.flags import options_named
from auditor.main import command as audit
from auditor.main import process
from auditor.options import Options

if TYPE_CHECKING:
    from auditor.sources.tree import Source
    from codemods.plans import Family, Plan
    from codemods.writing import Change

OK, FINDINGS, INCOMPLETE = 0, 1, 3

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_SHARED = options_named(
    "--vllm", "--platform", "--quiet", "--assume", "--env", "with_module", "without_module",
    "--cache-dir", "--no-cache",
)  # fmt: skip
_ARCHITECTURES = click.argument(
    "architectures",
    metavar="[ARCH|GLOB]...",
    nargs=-1,
    shell_complete=completion.architectures,
)
_version = click.version_option(__version__, prog_name="draftaudit", message="%(prog)s %(version)s")

EXIT_CODES = """
\b
Exit codes:
    0  done
    1  check: something could be patched; verify: a proof, test or mutant failed
    2  wrong usage, or a source or file that cannot be used
    3  done, but it stayed open whether some architecture lacks the method,
       or a part of the input could not be read
  130  interrupted
"""


@click.group(invoke_without_command=True, context_settings=_SETTINGS, epilog=EXIT_CODES)
@_version
@click.pass_context
def codemod(ctx: click.Context) -> int:
    """Write the get_top_tokens that is right for each draft model, or say why not.

    A patch is derived from how compute_logits gets to its head, and is printed only when the
    patched tree, audited in memory, proves that both pick the same token.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return OK


@codemod.command("list", epilog=EXIT_CODES)
@_ARCHITECTURES
@_SHARED
@click.option("-f", "--format", "form", type=click.Choice(["table", "json"]), default="table")
def list_(architectures: tuple[str, ...], form: str, **given: Any) -> int:
    """Say what would be done for each architecture that lacks the method, or why nothing is."""
    from codemods import reports
    from codemods.session import opened, planned

    options = Options(**given)
    plan = planned(opened(options), options, architectures)
    click.echo(reports.as_json(plan) if form == "json" else reports.as_text(plan), nl=False)
    return INCOMPLETE if reports.left_open(plan) else OK


@codemod.command(epilog=EXIT_CODES)
@_ARCHITECTURES
@_SHARED
@click.option("-f", "--format", "form", type=click.Choice(["diff", "json"]), default="diff")
@click.option("-o", "--output", metavar="DIR", help="One patch file a family, there.")
@click.option("--write", is_flag=True, help="Edit the folder in place: every file, or none.")
@click.option("--allow-dirty", is_flag=True, help="Edit files with uncommitted changes too.")
@click.option("--pr-text", is_flag=True, help="Print drafts of pull request bodies instead.")
@click.option("--flag-docstring", is_flag=True, help="Only the docstring of the setting.")
@click.option("--tests", is_flag=True, help="With a test of each patched class, as a new file.")
def apply(
    architectures: tuple[str, ...],
    form: str,
    output: str | None,
    write: bool,
    allow_dirty: bool,
    pr_text: bool,
    flag_docstring: bool,
    tests: bool,
    **given: Any,
) -> int:
    """Print the patches as diffs for git apply, or write them.

    Without ARCH, all that can be done. Refusals are told on standard error.
    """
    from codemods import reports
    from codemods.session import opened, planned

    _exclusive(("-o", output), ("--write", write), ("--pr-text", pr_text), ("--format json",
               form == "json"))  # fmt: skip
    _exclusive(("--tests", tests), ("--pr-text", pr_text), ("--flag-docstring", flag_docstring),
               ("--format json", form == "json"))  # fmt: skip
    if allow_dirty and not write:
        raise UsageError("has a meaning only with --write", where="--allow-dirty")
    options = Options(**given)
    source = opened(options)
    root = _root(source) if write else None
    if flag_docstring:
        _exclusive(("--flag-docstring", True), ("ARCH", architectures), ("--pr-text", pr_text),
                   ("--format json", form == "json"))  # fmt: skip
        return _flag_docstring(source, root, output, allow_dirty)
    plan = planned(source, options, architectures)
    if form == "json":
        click.echo(reports.as_json(plan, patches=True), nl=False)
        return _end(plan)
    for line in reports.refusals(plan):
        click.echo(line, err=True)
    if pr_text:
        _pr_texts(plan)
    else:
        patches = [(f.name, (*_changes(f), *(_tests(plan, f) if tests else ())))
                   for f in plan.families]  # fmt: skip
        _deliver(patches, root, output, allow_dirty)
    if tests:
        for line in reports.untested(plan):
            click.echo(line, err=True)
    for line in (reports.summary(plan), *reports.unproven(plan)):
        click.echo(line, err=True)
    return _end(plan)


@codemod.command("tests", epilog=EXIT_CODES)
@_ARCHITECTURES
@_SHARED
@click.option("-o", "--output", metavar="DIR", help="One file a patched class, there.")
def tests_(architectures: tuple[str, ...], output: str | None, **given: Any) -> int:
    """Print the pytest file that proves each patch inside a real vLLM.

    A test builds only what the two methods read, needs neither weights nor a GPU, and has no
    dependence on draftaudit. It belongs to vLLM's own tests, beside the others of the kind.
    """
    from codemods import reports
    from codemods.harness.files import files_of
    from codemods.session import opened, planned

    options = Options(**given)
    plan = planned(opened(options), options, architectures)
    for path, content in files_of(plan.trials).items():
        if output is None:
            click.echo(f"# {path}\n{content.decode()}")
        else:
            _file(Path(output), Path(path).name, content)
    for line in (*reports.refusals(plan), *reports.untested(plan)):
        click.echo(line, err=True)
    return _end(plan)


@codemod.command(epilog=EXIT_CODES)
@_ARCHITECTURES
@_SHARED
@click.option("--live", metavar="PYTHON", help="Run tests and mutants in the vLLM of this Python.")
@click.option("--live-timeout", type=float, metavar="SECONDS", help="From answer to answer.")
@click.option("-f", "--format", "form", type=click.Choice(["table", "json"]), default="table")
def verify(
    architectures: tuple[str, ...],
    live: str | None,
    live_timeout: float | None,
    form: str,
    **given: Any,
) -> int:
    """Prove the patches, and the methods that are there already.

    With --live the patches go into a copy of an installed vLLM, where the generated tests run, then
    mutants of the patches, each of which a test must fail on, then two ranks that pick together.
    """
    from codemods.harness.command import run as run_verify

    code, text = run_verify(Options(**given), architectures, live, live_timeout, form == "json")
    click.echo(text, nl=False)
    return code


@codemod.command(epilog=EXIT_CODES)
@_ARCHITECTURES
@_SHARED
def check(architectures: tuple[str, ...], **given: Any) -> int:
    """Exit with 1 if something could be patched."""
    from codemods import reports
    from codemods.session import opened, planned

    options = Options(**given)
    plan = planned(opened(options), options, architectures)
    for item in plan.patched:
        click.echo(f"{item.architecture} ({', '.join(item.platforms)}) could be patched")
    click.echo(reports.summary(plan), err=True)
    end = _end(plan)
    return FINDINGS if plan.families else end


@codemod.command("recover", epilog=EXIT_CODES)
@options_named("--vllm", "--quiet", "--cache-dir", "--no-cache")
def finish(**given: Any) -> int:
    """Finish an edit by apply --write that was interrupted while it replaced files."""
    from codemods.session import opened
    from codemods.writing import recover

    done = recover(_root(opened(Options(**given))))
    for path in done:
        click.echo(f"replaced {path}")
    if not done:
        click.echo("nothing to finish", err=True)
    return OK


def _exclusive(*given: tuple[str, object]) -> None:
    """Raise where more than one of these was given."""
    names = [name for name, value in given if value]
    if len(names) > 1:
        raise UsageError(f"cannot be combined with {names[1]}", where=names[0])


def _root(source: Source) -> Path:
    """The folder of a source that may be edited.

    Raises:
        UsageError: the source is not a folder.
    """
    root = getattr(source.tree, "root", None)
    if source.kind != "folder" or not isinstance(root, Path):
        raise UsageError(
            f"{source.origin} is not a folder",
            where="--write",
            next_step="Leave --write out to get diffs, or name a checkout with --vllm.",
        )
    return root


def _changes(family: Family) -> tuple[Change, ...]:
    from codemods.writing import changes_of

    return changes_of(family.before, family.after)


def _deliver(
    patches: list[tuple[str, tuple[Change, ...]]],
    root: Path | None,
    output: str | None,
    allow_dirty: bool,
) -> None:
    """Write the patches to the tree, to files, or to standard output."""
    from codemods.diff import file_diff

    if root is not None:
        _edit(root, tuple(change for _, changes in patches for change in changes), allow_dirty)
        return
    stdout = sys.stdout.buffer
    for name, changes in patches:
        diff = b"".join(file_diff(one.path, one.before, one.after) for one in changes)
        if output is None:
            stdout.write(diff)
        else:
            _file(Path(output), f"{name}.patch", diff)
    stdout.flush()


def _tests(plan: Plan, family: Family) -> tuple[Change, ...]:
    """The tests of a family's classes, as files that are made."""
    from codemods.harness.files import files_of, named
    from codemods.writing import Change

    own = {path for path, trial in named(plan.trials).items() if trial.family == family.name}
    return tuple(
        Change(path, None, content)
        for path, content in files_of(plan.trials).items()
        if path in own
    )


def _file(folder: Path, name: str, content: bytes) -> None:
    place = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    except OSError as error:
        raise UsageError(f"cannot be written ({error.strerror})", where=str(place)) from error
    click.echo(str(place))


def _edit(root: Path, changes: tuple[Change, ...], allow_dirty: bool) -> None:
    from codemods.dirty import dirty
    from codemods.writing import WriteError, write

    if not allow_dirty:
        for path in dirty(root, changes):
            raise WriteError(
                "has changes that are not committed",
                where=str(root / path),
                next_step="Commit or stash them, or use --allow-dirty. Nothing was changed.",
            )
    write(root, changes)
    for change in changes:
        click.echo(f"edited {change.path}")


def _flag_docstring(
    source: Source, root: Path | None, output: str | None, allow_dirty: bool
) -> int:
    from auditor.ruleset.capabilities import capability
    from codemods.applying import misapplied
    from codemods.diff import diff_of
    from codemods.flag import flag_change
    from codemods.gather import CAPABILITY

    change = flag_change(source, capability(CAPABILITY).flag)
    if change is None:
        click.echo("the docstring of the setting says so already", err=True)
        return OK
    before, after = {change.path: change.before or b""}, {change.path: change.after}
    why = misapplied(before, after, diff_of(before, after))
    if why is not None:
        raise UsageError(why, where=change.path, next_step="Nothing was changed.")
    _deliver([("flag-docstring", (change,))], root, output, allow_dirty)
    return OK


def _pr_texts(plan: Plan) -> None:
    from codemods.prtext import body

    for family in plan.families:
        click.echo(body(plan, family))


def _end(plan: Plan) -> int:
    from codemods.reports import left_open

    lines = left_open(plan)
    for line in lines:
        click.echo(line, err=True)
    return INCOMPLETE if lines else OK


@click.group(invoke_without_command=True, context_settings=_SETTINGS)
@_version
@click.pass_context
def group(ctx: click.Context) -> int:
    """Audit vLLM's draft models for a capability, and patch those that lack it."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return OK


group.add_command(audit, "audit")
group.add_command(codemod, "codemod")


def main() -> NoReturn:
    """Entry point of ``codemod``."""
    process(codemod, "codemod")


def draftaudit() -> NoReturn:
    """Entry point of ``draftaudit``."""
    process(group, "draftaudit")
