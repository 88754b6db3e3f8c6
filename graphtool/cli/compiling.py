"""lower, emit, build, cache: from a graph to a program, to C, to a shared library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool.cli import options, sources, terminal
from graphtool.errors import UsageError

if TYPE_CHECKING:
    from graphtool.io.weights import Weight
    from graphtool.ir.graph import Module
    from graphtool.kernels.choice.rules import Rules
    from graphtool.loops.program import Program
    from graphtool.target import Target

Model = Annotated[str, typer.Argument(
    metavar="IN", help="A graph, a program or a model. A model is imported first, and a graph "
                        "that the pass `fuse` has not seen is optimised.")]
Models = Annotated[list[str], typer.Argument(
    metavar="IN...", help="A graph, a program or a model. A model is imported first, and a graph "
                           "that the pass `fuse` has not seen is optimised. Several ones, each "
                           "perhaps as NAME=IN, become entry points of one library.")]
Fat = Annotated[str, typer.Option("--march", help="The CPU to compile for: native (this "
                                  "machine), a row of the table of targets, or fat: all levels of "
                                  "x86-64 in one library, which chooses when it is loaded.")]
Jobs = Annotated[int | None, typer.Option(
    "-j", "--jobs", min=1, help="The number of C files to compile at the same time.")]
Exe = Annotated[bool, typer.Option(
    "--exe", help="Also make a program that reads and writes .npz files, or, from a training "
    "graph, one that trains.")]
Static = Annotated[bool, typer.Option(
    "--static", help="Make a static library (.a), and with --exe a program that needs no shared "
    "libraries.")]
OpenMP = Annotated[bool, typer.Option("--openmp/--no-openmp",
    help="Whether to use threads, by OpenMP.")]
IndexChecks = Annotated[bool, typer.Option("--index-checks/--no-index-checks",
    help="Whether a run fails with an error if an index is out of range. Without this "
         "check the nearest element is used, and no error is reported.")]
WeightsIn = Annotated[str, typer.Option(
    "--weights", help="Where the weights go. file: a file that is mapped at run time. embed: into "
    "the library. c: into the C, as arrays.")]
Mpi = Annotated[bool, typer.Option(
    "--mpi", help="For a training graph: train in several processes, started by mpirun.")]
Tokens = Annotated[Path | None, typer.Option(
    "--tokenizer", metavar="FILE", help="For a language model: a tokenizer, as `graphtool "
    "tokenizer train` makes it. `generate` and the C program in the build write text with it.")]
DebugLines = Annotated[bool, typer.Option(
    "--debug-lines", help="Let gdb and perf show the model's own lines: its Python source, or a "
    "listing of its nodes beside the C. The machine code stays the same.")]
Keep = Annotated[bool, typer.Option("--keep",
    help="Write the artifact of each stage to OUT/stages.")]


@dataclass(frozen=True)
class Lowered:
    """A program with the weights it may use, the modules on the way to it, by stage, and the one
    that was read."""

    program: Program
    store: Mapping[str, Weight]
    stages: Mapping[str, Module]
    read: Module | None = None

    def nodes(self, wanted: bool) -> dict[str, str] | None:
        """If wanted, the text of the node that makes each value, as far as there is a graph."""
        return _nodes(self.read, wanted)


def _nodes(module: Module | None, wanted: bool) -> dict[str, str] | None:
    if not wanted or module is None:
        return {} if wanted else None
    from graphtool.ir.node_texts import node_texts
    return node_texts(module)


def lower(graph: options.Graph, out: options.Out = None, name: options.Name = None,
          march: options.March = "native", precision: options.Precision = "default",
          kernels: options.Kernels = "generated", tuning: options.Tuning = None,
          assume: options.Assume = "finite", index_checks: IndexChecks = True,
          capture: options.Capture = None) -> None:
    """Lower a graph to a program: loops, buffers and a plan of memory."""
    from graphtool.loops import serial
    lowered = _lowered(graph, name, _target("cpu", march),
                       rules=sources.rules(precision, kernels, tuning, assume), as_is=True,
                       index_checks=index_checks, how=sources.captured(capture))
    if out is None or str(out) == "-":
        sources.write(None, serial.dumps(lowered.program))
    else:
        serial.save(lowered.program, out, lowered.store)


def emit(source: Model, out: Annotated[Path, typer.Option(
        "-o", "--out", help="The directory for the C files.")],
         name: options.Name = None, march: options.March = "native",
         inputs: options.Shapes = None, capture: options.Capture = None,
         dynamic: options.Dynamic = None, limit: options.Limit = None,
         strict: options.Strict = None, debug_lines: DebugLines = False) -> None:
    """Write the C of a graph, program or model, and compile nothing."""
    from graphtool.emit.c import emit as emit_c
    from graphtool.io.together import write_files
    how = sources.importing(inputs, capture, dynamic, limit, strict)
    lowered = _lowered(source, name, _target("cpu", march), how=how)
    texts = emit_c(lowered.program, nodes=lowered.nodes(debug_lines))
    write_files(out, texts)
    for file, text in texts.items():
        terminal.note(f"{out / file}: {len(text.splitlines())} lines")


def build(source: Models, out: options.OutDir, name: options.Name = None,
          target: options.Target = "cpu", march: Fat = "native", cc: options.Cc = None,
          jobs: Jobs = None, passes: options.Passes = None, exe: Exe = False,
          static: Static = False, openmp: OpenMP = True, weights: WeightsIn = "file",
          mpi: Mpi = False, precision: options.Precision = "default",
          kernels: options.Kernels = "generated", tuning: options.Tuning = None,
          assume: options.Assume = "finite", machine: options.Machine = None,
          keep: Keep = False, index_checks: IndexChecks = True, inputs: options.Shapes = None,
          capture: options.Capture = None, dynamic: options.Dynamic = None,
          limit: options.Limit = None, strict: options.Strict = None, tokenizer: Tokens = None,
          debug_lines: DebugLines = False) -> None:
    """Compile a graph, program or model into a build directory.

    It contains the C, the library, its header, the weights and build.json. Several models become
    entry points of one library over one set of weights: `build prefill=p.graph.json
    decode=d.graph.json`."""
    from graphtool.cli import entries
    rules = sources.rules(precision, kernels, tuning, assume)
    importing = sources.importing(inputs, capture, dynamic, limit, strict)
    for one in source:
        importing.check(entries.split(one)[1])
    how: dict[str, Any] = {"cc": cc, "jobs": jobs, "exe": exe, "static": static, "openmp": openmp}
    if not index_checks and any(one.endswith(".program.json") for one in source):
        raise UsageError("GT3052", "--no-index-checks is for graphs, this is a program",
                         hint="graphtool lower --no-index-checks makes one without")
    if len(source) > 1 or entries.split(source[0])[0] or tokenizer:
        entries.refuse({"--march fat": march == "fat", "--exe": exe, "--keep": keep,
                        "--mpi": mpi})
        goal = _target(target, march, machine)
        found = _entries(source, passes, rules, goal, index_checks, importing)
        path = entries.build({entry: one.program for entry, one in found.items()},
                             {d: w for one in found.values() for d, w in one.store.items()},
                             out, name or "model", goal, cc=cc, jobs=jobs,
                             static=static, openmp=openmp, weights=weights,
                             tokenizer=entries.tokens(tokenizer),
                             nodes={n: line for one in found.values()
                                    for n, line in (one.nodes(True) or {}).items()}
                             if debug_lines else None)
    else:
        path = _build_one(source[0], importing, out, name, target, march, machine, passes, keep,
                          mpi, rules, index_checks, weights, debug_lines, how)
    terminal.lines([str(path)])


def _entries(given: Sequence[str], passes: str | None, rules: Rules, target: Target,
             index_checks: bool, importing: sources.Importing) -> dict[str, Lowered]:
    """The entry points by their names, lowered one after another."""
    from graphtool.cli import entries
    out = {}
    for entry, source in entries.named(given):
        if _training_graph(source):
            raise UsageError("GT3055", f"{source} is a training graph", hint="alone it becomes a "
                             "library of init, step, loss and predict over one state")
        out[entry] = _lowered(source, entry, target, passes, rules, index_checks=index_checks,
                              how=importing)
    return out


def _build_one(source: str, importing: sources.Importing, out: Path, name: str | None,
               target: str, march: str, machine: str | None, passes: str | None, keep: bool,
               mpi: bool, rules: Rules, index_checks: bool, weights: str, debug: bool,
               how: Mapping[str, Any]) -> Path:
    """The build of one graph, program or model, of whatever kind it is."""
    from graphtool.emit.names import c_name
    if march == "fat":
        return _fat(source, importing, out, name, passes, keep, rules, index_checks, debug, machine,
                    weights=weights, **how)
    if training := _training_graph(source):
        from graphtool.native.training import build_training
        if keep or passes is not None or weights != "file":
            raise UsageError("GT3052", "--keep, --passes and --weights are for models, this is a "
                                       "training graph",
                             hint="its constants are always built in; optimise the model first")
        return build_training(training, out, name=name or c_name(source), mpi=mpi, rules=rules,
                              target=_target(target, march, machine),
                              index_checks=index_checks, nodes=_nodes(training, debug), **how)
    if mpi:
        raise UsageError("GT3052", "--mpi is for training graphs, this is a model",
                         hint="graphtool grad MODEL --loss … --optimizer adam makes one")
    lowered, path = _model(source, importing, out, name, passes, rules,
                           _target(target, march, machine), index_checks, keep, debug,
                           weights=weights, **how)
    terminal.note(f"{path}: {', '.join(sorted(p.name for p in path.iterdir()))}")
    if line := _memory(lowered.program):
        terminal.note(line)
    return path


def _model(source: str, importing: sources.Importing, out: Path, name: str | None,
           passes: str | None, rules: Rules, target: Target, index_checks: bool, keep: bool,
           debug: bool, **how: Any) -> tuple[Lowered, Path]:
    """The build of a graph, program or model, and what it was made from."""
    from concurrent.futures import ThreadPoolExecutor

    from graphtool.native.build import build as compile_program
    from graphtool.native.compiler import find
    with ThreadPoolExecutor(1) as beside:  # to ask a compiler what it can takes as long as a pass
        beside.submit(find, how["cc"], target, openmp=how["openmp"])
        lowered = _lowered(source, name, target, passes, rules, index_checks=index_checks,
                           how=importing)
    return lowered, compile_program(lowered.program, out, name=lowered.program.name, target=target,
                                    store=lowered.store, **how, nodes=lowered.nodes(debug),
                                    also=partial(_keep, lowered) if keep else None)


def _memory(program: Program) -> str:
    """What a run needs beside the weights, where all sizes are known."""
    from graphtool.loops.liveness import most_live
    live = most_live(program)
    if live is None or not isinstance(program.arena, int):
        return ""
    return f"arena: {program.arena} bytes, of which {live} live at once"


def _fat(source: str, importing: sources.Importing, out: Path, name: str | None,
         passes: str | None, keep: bool, rules: Rules, index_checks: bool, debug: bool,
         machine: str | None, **how: Any) -> Path:
    """One library with a version for each level of x86-64."""
    from graphtool.emit.names import c_name
    from graphtool.native.fat import build_fat
    from graphtool.target import X86_64, family
    if keep or source.endswith(".program.json") or _training_graph(source):
        raise UsageError("GT3054", "--march fat compiles a model several times over, from a model "
                                   "or graph of inference, without --keep",
                         hint="name one level for the others, like --march x86-64-v3")
    levels = {n: _lowered(source, name, sources.on_machine(t, machine), passes, rules,
                          index_checks=index_checks, how=importing)
              for n, t in family(X86_64).items()}
    store = {d: w for one in levels.values() for d, w in one.store.items()}
    return build_fat({n: one.program for n, one in levels.items()}, out,
                     name=name or c_name(source), store=store,
                     nodes=next(iter(levels.values())).nodes(debug), **how)


def _training_graph(source: str) -> Module | None:
    """The graph, if it is one that `grad --optimizer` made: it becomes several programs."""
    if not source.endswith((".json", ".gt")) or source.endswith(".program.json"):
        return None
    module = sources.load(source)
    return module if isinstance(module.meta.get("training"), dict) else None


def _target(target: str, march: str, machine: str | None = None) -> Target:
    from graphtool.target import named
    return sources.on_machine(named(march if target == "cpu" else target), machine)


def _lowered(source: str, name: str | None, target: Target,
             passes: str | None = None, rules: Rules | None = None,
             as_is: bool = False, index_checks: bool = True,
             how: sources.Importing = sources.AS_IS) -> Lowered:
    """The program of a source: read as it is, or lowered from a graph.

    A graph without fusion groups goes through the passes first, unless it is taken `as_is`.
    """
    if source.endswith(".program.json"):
        how.check(source)
        sources.check_machine(target, source)
        program, store = sources.program(source)
        return Lowered(program, store, {})
    from graphtool import passes as optimiser
    from graphtool.emit.names import c_name, check_name
    from graphtool.ir.serial import collect_all
    from graphtool.kernels.choice.rules import Rules
    from graphtool.lower import lower as lower_module
    name = name or c_name(source)
    check_name(name)
    read = module = sources.load(source, how)
    stages = {"import": module} if sources.is_model(source) else {}
    raw = sources.is_model(source) or not (as_is or module.graph.groups)
    if raw or passes is not None:
        module = stages["opt"] = optimiser.run(module, passes,
                                               supply={"target": target, "rules": rules})
    else:
        sources.check_machine(target, source)
    if not raw and passes is None and rules not in (None, Rules()):
        raise UsageError("GT3090", "kernels are chosen when a graph is optimised, and this one is "
                                   "built as it is",
                         hint="give --precision, --assume, --kernels and --tuning to "
                              "`graphtool opt`, or to build with a model")
    program = lower_module(module, target, name=name, index_checks=index_checks)
    return Lowered(program, {w.digest: w for w in collect_all(module.graph)}, stages,
                   read)


def _keep(lowered: Lowered, path: Path) -> None:
    """Write every stage's artifact into a build, in the order they were made."""
    from graphtool.ir import serial
    from graphtool.loops import serial as loops
    folder = path / "stages"
    folder.mkdir()
    for i, (stage, module) in enumerate(lowered.stages.items()):
        serial.save(module, folder / f"{i}-{stage}.graph.json")
    loops.save(lowered.program, folder / f"{len(lowered.stages)}-lower.program.json",
               lowered.store)


def cache_dir() -> None:
    """Print the directory of the cache."""
    from graphtool.native import cache
    terminal.lines([str(cache.directory())])


def cache_prune(limit: Annotated[int | None, typer.Option(
        "--limit", min=0, help="Leave at most this many bytes.")] = None) -> None:
    """Delete what has not been used for long, and the oldest files beyond the limit."""
    from graphtool.native import cache
    freed = cache.prune() if limit is None else cache.prune(limit)
    terminal.lines([f"{freed} bytes freed"])


def cache_clear() -> None:
    """Delete everything in the cache."""
    from graphtool.native import cache
    terminal.lines([f"{cache.clear()} bytes freed"])
