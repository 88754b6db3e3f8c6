"""What a model is compared with: other graphs, other artifacts, the clock, other kernels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from graphtool.api.arguments import Array, Kernels, Pathlike, Precision, checked, rules
from graphtool.assume import Assumption
from graphtool.ir.graph import Module
from graphtool.kernels.choice.tuning import Tuning, save
from graphtool.kernels.choice.tuning import load as load_tuning
from graphtool.native import runtime
from graphtool.report.bench import Bench
from graphtool.report.bench import bench as time_all
from graphtool.report.diff import Diff
from graphtool.report.diff import diff as compare_graphs
from graphtool.report.profile import Profile
from graphtool.report.profile import profile as profile_build
from graphtool.target import named
from graphtool.tune import search
from graphtool.verify import sides
from graphtool.verify.bounding import BoundReport
from graphtool.verify.bounding import bound as bounded
from graphtool.verify.check import CheckReport
from graphtool.verify.check import check as compare


@checked
def diff(a: Module, b: Module) -> Diff:
    """What differs between two graphs by structure; names, order and fusion do not count.

    `.equal` says whether they are the same, `.changes` lists what is not.
    """
    difference = compare_graphs(a, b)
    vars(difference)["graphs"] = (a, b)
    return difference


@checked
def check(a: Module | Pathlike, b: Module | Pathlike, inputs: Mapping[str, Array] | None = None, *,
          seed: int = 0, sizes: Mapping[str, int] | None = None, atol: float | None = None,
          rtol: float = 1e-4, divergence: bool = False,
          entry: str | None = None) -> CheckReport:
    """Whether two artifacts or models compute the same; the first one is the reference.

    Each is a module, or the path of a graph, program, build directory, ONNX model or torch source.
    Inputs are made up from `seed` unless they are given, open dims have their `sizes`.
    `divergence` also finds the first value on which two graphs part, `entry` is the entry point of
    a build that has several. Raises UsageError GT3042, GT3044, GT2222, GT2223.
    """
    left, right = _side(a, entry), _side(b, entry)
    paths = [str(x) for x in (a, b) if not isinstance(x, Module)]
    arrays = dict(inputs) if inputs is not None else sides.made_up(
        paths, (left, right), seed, sizes or {})
    given = sides.by_position(arrays, tuple(arrays), left.inputs)
    return compare(left, right, given, atol, rtol, divergence)


def _side(x: Module | Pathlike, entry: str | None) -> sides.Side:
    return sides.of_module(x) if isinstance(x, Module) else sides.open_side(str(x), entry)


@checked
def bound(module: Module, ranges: Mapping[str, tuple[float, float]] | None = None,
          inputs: Mapping[str, Array] | None = None, *, samples: int = 0, seed: int = 0,
          sizes: Mapping[str, int] | None = None) -> BoundReport:
    """How far each output may be from that of real arithmetic, for all inputs of these ranges.

    An input is that in `inputs`, exactly, or any numbers of its range, by default from -1 to 1;
    open dims have their `sizes`. `.outputs` has a row for each output: what it is between, and its
    greatest error; `samples` runs are compared with that, and `.held` says whether no error was
    larger. The bound holds for the evaluator and for builds with `precision="strict"`. Raises
    UsageError GT3174 for a name or a range that is none, InputError GT0534, GT0535.
    """
    return bounded(module, ranges or {}, inputs or {}, samples, seed, sizes)


@checked
def bench(build_dir: Pathlike, inputs: Mapping[str, Array] | None = None, *, seconds: float = 2.0,
          threads: int | None = None, seed: int = 0, sizes: Mapping[str, int] | None = None,
          entry: str | None = None) -> Bench:
    """The time of a run in milliseconds: median, minimum and maximum in about `seconds` seconds.

    `entry` is the entry point of a build that has several.
    """
    model = runtime.load(Path(build_dir), threads, entry=entry)
    arrays = inputs if inputs is not None else sides.build_inputs(model, seed, sizes or {})
    outputs = model.run(arrays)
    return time_all({"graphtool": lambda: model.run(arrays, out=outputs)}, model.threads, seconds)


@checked
def profile(build_dir: Pathlike, inputs: Mapping[str, Array] | None = None, *, runs: int = 30,
            threads: int | None = None, seed: int = 0, sizes: Mapping[str, int] | None = None,
            entry: str | None = None) -> Profile:
    """The time of each step of compiled code on each thread, in microseconds, beside what the
    machine can do at most; of a training build, of one step; `entry` is the entry point of
    a build that has several.

    Raises InputError GT2219, GT2226, GT2228 for a build that cannot be profiled.
    """
    path = Path(build_dir)
    model, state = runtime.load(path, threads, entry=entry), sides.training_state(path)
    arrays = inputs if inputs is not None else sides.build_inputs(model, seed, sizes or {})
    return profile_build(path, {**arrays, **state}, threads, runs, entry)[0]


@checked
def tune_model(module: Module, out: Pathlike | None = None, *, target: str = "native",
               precision: Precision = "default", kernels: Kernels = "generated",
               seconds: float = 0.3, budget: float | None = None, threads: int = 0,
               cc: str | None = None, assume: Assumption = "finite") -> search.TuneReport:
    """Measure the alternatives of each layer's kernel on this machine.

    The file `out` keeps what was measured, for `optimize(tuning=out)`; what is in it stays.
    `seconds` is the time for one layer, `budget` for all (None: no limit). The report's `left`
    names the layers that were not reached.
    """
    machine = named(target, threads)
    how = search.Search(machine, rules(precision, kernels, None, assume), seconds, cc)
    path = Path(out) if out is not None else None
    known = load_tuning(path) if path is not None and path.exists() else Tuning()
    todo = search.sites(search.records(module, machine), how)
    results = list(search.tune(todo, how, budget, lambda t: save(t, path) if path else None, known))
    done = {t.site for t in results}
    return search.TuneReport(machine.threads, results, [str(s) for s in todo if str(s) not in done],
                             True)
