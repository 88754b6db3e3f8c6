"""The typer app: the table of verbs in the order that a model goes through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from graphtool.cli import (
    benching,
    captures,
    catalog,
    compiling,
    debugging,
    demo,
    derivatives,
    faultfinding,
    git,
    inspect,
    machine,
    quantising,
    reporting,
    running,
    terminal,
    training,
    transform,
    tuning,
    why,
    writing,
)
from graphtool.cli.group import SETTINGS, group
from graphtool.cli.usage_examples import epilog
from graphtool.release import release

VERBS: tuple[tuple[str, Callable[..., object]], ...] = (
    ("import", transform.import_),
    ("show", inspect.show),
    ("eval", transform.eval_),
    ("opt", transform.opt),
    ("quantise", quantising.quantise),
    ("grad", training.grad),
    ("jvp", derivatives.jvp),
    ("vmap", derivatives.vmap),
    ("lower", compiling.lower),
    ("emit", compiling.emit),
    ("build", compiling.build),
    ("run", running.run),
    ("generate", writing.generate),
    ("train", training.train),
    ("weights", training.weights),
    ("bench", benching.bench),
    ("profile", running.profile),
    ("tune", tuning.tune),
    ("machine", machine.machine),
    ("check", running.check),
    ("debug", debugging.debug),
    ("diff", inspect.diff),
    ("why", why.why),
    ("reduce", faultfinding.reduce),
    ("repro", faultfinding.repro),
    ("compare-captures", captures.compare_captures),
    ("draw", inspect.draw),
    ("view", inspect.view),
    ("report", reporting.report),
    ("export", transform.export),
    ("ops", catalog.ops),
    ("passes", catalog.passes),
    ("schema", catalog.schema),
    ("support", catalog.support),
    ("doctor", catalog.doctor),
    ("explain", catalog.explain),
    ("completion", catalog.completion),
    ("demo", demo.demo),
)
cache = typer.Typer(**SETTINGS, help="Manage the cache of compiled objects.")
cache.command("dir", epilog=epilog("cache dir"))(compiling.cache_dir)
cache.command("prune", epilog=epilog("cache prune"))(compiling.cache_prune)
cache.command("clear", epilog=epilog("cache clear"))(compiling.cache_clear)
versioned = typer.Typer(**SETTINGS, help="Show and merge graph files in git by structure.")
for _name, _verb in (("install", git.install), ("uninstall", git.uninstall),
                     ("status", git.status), ("check", git.check),
                     ("review", git.review), ("textconv", git.textconv), ("merge", git.merge),
                     ("merge-weights", git.merge_weights)):
    versioned.command(_name, epilog=epilog(f"git {_name}"))(_verb)
tokens = typer.Typer(**SETTINGS, help="Make a tokenizer from text, and apply it.")
tokens.command("train", epilog=epilog("tokenizer train"))(writing.train)
tokens.command("encode", epilog=epilog("tokenizer encode"))(writing.encode)
tokens.command("decode", epilog=epilog("tokenizer decode"))(writing.decode)
app = typer.Typer(cls=group({**dict(VERBS), "tokenizer": tokens, "cache": cache,
                             "git": versioned}, epilog), **SETTINGS,
                  context_settings={"help_option_names": ["-h", "--help"]})


def _version(wanted: bool) -> None:
    if wanted:
        terminal.lines([f"graphtool {release().version}"])
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(context: typer.Context,
         version: Annotated[bool, typer.Option(
             "--version", callback=_version, is_eager=True,
             help="Print the version.")] = False,
         plugin: Annotated[list[str] | None, typer.Option(
             "--plugin", metavar="FILE", help="Load a Python file that adds ops, rules, passes, "
             "kernels, targets or importers. May follow the verb, and be given several times."
             )] = None) -> None:
    """A compiler for machine-learning graphs: import, inspect, optimise, build, run, train.

    Every stage writes a file that the next one reads. Results go to stdout, messages to stderr.
    `--plugin FILE.py`, before or after the verb, loads a plug-in.
    Exit codes: 0 fine, 1 differs or fails a check, 2 usage, 3 bad input, 4 unsupported,
    5 the C compiler failed, 70 internal error, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        terminal.document(context.get_help() + "\n")
