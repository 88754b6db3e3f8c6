"""git install, uninstall, status, check, review and what git calls: graph files in git."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphtool.cli import options, terminal
from graphtool.errors import InputError

if TYPE_CHECKING:
    from graphtool.report.git import GitStatus

Base = Annotated[Path, typer.Argument(metavar="BASE", help="The common ancestor (%O).")]
Ours = Annotated[Path, typer.Argument(
    metavar="OURS", help="Our side (%A), which becomes the result.")]
Theirs = Annotated[Path, typer.Argument(metavar="THEIRS", help="Their side (%B).")]
Shown = Annotated[str, typer.Option("--path", help="The path of the file in messages (%P).")]


def install() -> None:
    """Let `git diff` and `git merge` in this repository understand graph files.

    The drivers are entered in .git/config, the files that they are for in .gitattributes, which is
    to be committed. Others who clone the repository run this once."""
    from graphtool.integrations.git import config
    _tell(config.install(Path.cwd()), False)


def uninstall() -> None:
    """Remove the drivers from this repository."""
    from graphtool.integrations.git import config
    config.uninstall(Path.cwd())
    terminal.note("removed from .git/config and .gitattributes")


def status(json: options.Json = False) -> int:
    """Say whether the drivers are installed here. The exit code is 1 if they are not."""
    from graphtool.integrations.git import config
    state = config.status(Path.cwd())
    _tell(state, json)
    return 0 if state.ok else 1


def textconv(file: Annotated[Path, typer.Argument(metavar="FILE", help="A graph file.")]) -> None:
    """Print a graph file as git shows it: its listing, without reading its weights."""
    from graphtool.integrations.git.drivers import textconv as convert
    terminal.lines(convert(file))


def merge(base: Base, ours: Ours, theirs: Theirs, path: Shown = "") -> int:
    """Merge two descendants of a graph file by structure. The exit code is 1 with conflicts.

    Changes of different nodes are merged, whatever the lines they stand on."""
    from graphtool.integrations.git.drivers import merge_graphs
    name = path or str(ours)
    try:
        merged = merge_graphs(base, ours, theirs)
    except InputError as error:  # git takes higher codes for a failure of the whole merge
        terminal.note(f"{name}: not merged by structure", *str(error).split("\n"))
        return 1
    for line in merged.conflicts:
        terminal.note(f"{name}: conflict: {line}")
    if merged.dropped:
        terminal.note(f"{name}: without {', '.join(merged.dropped)}: `graphtool opt` makes them "
                      "anew")
    return 1 if merged.conflicts else 0


def merge_weights(base: Base, ours: Ours, theirs: Theirs, path: Shown = "") -> int:
    """Merge the weights files of two graphs: the result has the weights of both."""
    from graphtool.integrations.git.drivers import merge_weights as both
    try:
        both(ours, theirs)
    except InputError as error:
        terminal.note(f"{path or ours}: not merged", *str(error).split("\n"))
        return 1
    return 0


def check(paths: Annotated[list[Path], typer.Argument(metavar="FILE", help="Graph files.")],
          format: options.Format = None, json: options.Json = False) -> int:
    """Check graph files before a commit: valid, with their weights, as graphtool writes them.

    The exit code is 1 if one is not."""
    from graphtool.integrations.git.drivers import check_files, hook_lines, hook_outcome
    form = terminal.chosen_format(format, json)
    findings = check_files(paths)
    terminal.tell(findings, form, lambda: hook_lines(findings), lambda: hook_outcome(findings))
    return 0 if findings.ok else 1


def review(base: Annotated[str, typer.Argument(
        metavar="BASE", help="The revision to compare with, such as origin/main.")],
           comment: Annotated[Path | None, typer.Option(
               "--comment", metavar="FILE", help="Also write the comment for a pull request, in "
               "markdown with a picture of each change.")] = None,
           format: options.Format = None, json: options.Json = False) -> int:
    """Compare the graph files of the working tree with those of a revision.

    Where BASE has moved on, its last common ancestor with HEAD counts. The exit code is 1 if a
    graph differs. No weights are read."""
    from graphtool.integrations.git import review as reviewing
    from graphtool.io import files
    form = terminal.chosen_format(format, json)
    outcome, pairs = reviewing.review(Path.cwd(), base)
    if comment is not None:
        files.write_bytes(comment, "".join(f"{line}\n" for line in reviewing.comment(
            outcome, pairs)).encode())
    terminal.tell(outcome, form, lambda: reviewing.review_lines(outcome),
                 lambda: reviewing.review_outcome(outcome, pairs))
    return 0 if outcome.ok else 1


def _tell(state: GitStatus, json: bool) -> None:
    from graphtool.integrations.git.config import status_lines
    terminal.report(state, json, status_lines(state))
