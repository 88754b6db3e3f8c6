"""The options of a build: how a model is imported, how kernels are chosen, how C is compiled.

An option is one field of a record, which the command line, the API and the refusals read. A new
option is a field here: `build`, `emit`, `lower` and `graphtool.build` have it then. What it does
stands where it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from graphtool.compile.option import given, option
from graphtool.errors import UsageError

if TYPE_CHECKING:
    from graphtool.assume import Assumption
    from graphtool.assume.tiers import Tier
    from graphtool.kernels.choice.rules import Rules
    from graphtool.kernels.choice.tuning import Tuning
    from graphtool.language.tokenizer import Tokenizer
    from graphtool.target import Target

Pathlike = str | PathLike[str]
Precision = Literal["strict", "default", "high", "fast"]
Kernels = Literal["generated", "blas", "auto"]
WeightsIn = Literal["file", "embed", "c"]
ThreadsBy = Literal["pool", "caller", "none"]
Objective = Literal["usual", "size", "ram", "speed"]
Capture = Literal["export", "fx", "jax"]
Profile = Literal["safety"]
MODEL, PROGRAM, ENTRIES, TRAINING, LEVELS = "model", "program", "entries", "training", "levels"
KINDS = {  # kind of a unit: what it is called, and the code of a refusal
    MODEL: ("a model", "GT3052"), PROGRAM: ("a program", "GT3052"),
    TRAINING: ("a training graph", "GT3052"), LEVELS: ("--march fat", "GT3054"),
    ENTRIES: ("several entry points", "GT3055")}
_ALONE = {ENTRIES: "build one model at a time"}
_BUILT_IN = "its constants are always built in; optimise the model first"
_LOWER = "give the option to `graphtool lower`, which makes the program"
_ONE_FUNCTION = "it is for one function that infers; build the functions one by one"
ONE_LEVEL = "name one level, like --march x86-64-v3"
_UNMEASURED = _ALONE | {
    LEVELS: ONE_LEVEL, TRAINING: "limits are for one function; the header that `graphtool emit` "
    "writes has the bytes of a trainer, as NAME_ARENA_BYTES and NAME_STATE_BYTES"}
_STEP = "graphtool grad MODEL --loss … --optimizer adam makes one that trains"
_TEXT = "give the entry point a name: decode=MODEL, or in Python {'decode': module}"


def targets() -> Iterable[str]:
    """The words that `--march` takes, but for `fat`."""
    from graphtool.target import TABLE
    return ("native", "cpu", *TABLE)


def passes() -> Iterable[str]:
    """The names of the passes."""
    from graphtool.passes import PASSES
    return (p.name for p in PASSES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Importing:
    """How a model becomes a graph."""

    inputs: Sequence[str] = option(
        (), "--inputs", several=True, metavar="NAME:TYPE",
        help="The name and type of an input of a torch model, as in x:f32[1,3,224,224]. For an "
        "ONNX model: s:(f32[4],f32[5]) gives the types in a sequence, x:none leaves an optional "
        "input out, rate=16000 fills an input with a number for good. May be repeated.")
    capture: str | None = option(
        None, "--capture", words=partial(get_args, Capture),
        help="How to capture Python code: export (torch.export, the default) or fx (torch.fx) of a "
        "torch model, jax (jax.export) of a function of JAX.")
    dynamic: Sequence[str] = option(
        (), "--dynamic", several=True, metavar="NAME=LO..HI",
        help="Leave a dim of a torch model open: batch=1..64 opens dim 0 of every input, "
        "seq@ids.1,mask.1=1..128 the dims that it names. Also for named dims of an ONNX model: "
        "'H=32..1024 step 32', W=H (equal sizes), N=1. May be repeated.")
    limit: Sequence[str] = option(
        (), "--limit", several=True, metavar="NAME=NUMBER",
        help="What the import of an ONNX model and its check may take: nodes, bytes of one array, "
        "seconds. May be repeated.")
    strict: bool | None = option(
        None, "--strict/--lenient", kind=bool,
        help="Refuse an ONNX model for every violation of the specification, or take every "
        "violation that can be given a meaning. By default those with one meaning are taken with "
        "a warning.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Choosing:
    """The machine and the rules for the choice of kernels."""

    target: str | Target = option(
        "native", "--march", "--target", words=targets,
        help="The CPU to compile for: native or cpu (this machine), a row of the table of targets, "
        "such as x86-64-v3 or armv8-a; for `build` and `emit` also fat: all levels of x86-64 in "
        "one library, which chooses when it is loaded.")
    machine: str | None = option(
        None, "--machine", metavar="ROW", help="Choose kernels by the figures of another machine: "
        "a row that `graphtool machine --list` prints, generic, or a .json file that `graphtool "
        "machine -o` wrote. By default those of the processor at hand, where it is known.")
    threads: int | None = option(
        None, "--threads", kind=int, least=1, refused={PROGRAM: _LOWER},
        help="The most threads that a run may use. By default a run uses as many as there are "
        "processors where it runs, 256 at most, and kernels are chosen for as many as there are "
        "here.")
    precision: Precision = option(
        "default", "--precision", words=partial(get_args, Precision),
        help="strict: the same bits on any machine, with any compiler and number of threads. "
        "default. high: products in tf32 on a GPU, in two bfloat16 parts on the matrix unit of a "
        "CPU. fast: products in bfloat16 where the CPU has them.")
    kernels: Kernels = option(
        "generated", "--kernels", words=partial(get_args, Kernels),
        help="generated: graphtool's own. blas: a CBLAS library for large products. auto: "
        "whichever `tune` found faster.")
    tuning: Pathlike | Tuning | None = option(
        None, "--tuning", kind=Path, metavar="FILE",
        help="A file that `graphtool tune` has written. If two lines have the same key, the later "
        "one counts.")
    assume: Assumption = option(
        "finite", "--assume", words=lambda: ("finite", "nothing", "normal"),
        help="finite: a kernel may spread or move a NaN or an infinity, as Winograd's do. nothing: "
        "they stay where the model makes them; so it always is in strict. normal: as finite, and "
        "subnormal numbers, below 1.2e-38 in float32, count as 0.")
    objective: Objective = option(
        "usual", "--objective", words=partial(get_args, Objective),
        help="size: of two kernels the one with fewer bytes of weights and workspace; Winograd's "
        "are left out. ram: also, rows of the images are streamed through the first layers of a "
        "network on bytes, which takes more time. speed: the faster one. usual: size for a "
        "microcontroller, else speed.")
    proofs: Tier = option(
        "tested", "--proofs", words=lambda: ("proved", "bounded", "tested"),
        help="Use only rewrite rules and passes of this tier of proof or a better one: proved, "
        "bounded, tested. Those that are left out are named; kernels are then plain loops.")

    @property
    def goal(self) -> Target:
        """The machine. Raises UsageError GT2101, GT2103, InputError GT2104."""
        from graphtool import target as targets
        target = self.target
        if isinstance(target, str):
            target = targets.named("native" if target == "cpu" else target)
        return self.on_machine(target)

    def on_machine(self, target: Target) -> Target:
        """The target with the figures of the machine that is named, and with the number of threads
        that is stated, if any are."""
        from graphtool import target as targets
        if self.machine is not None:
            target = targets.on_machine(target, self.machine)
        return target if self.threads is None else targets.for_threads(target, self.threads)

    @property
    def rules(self) -> Rules:
        """Which kernels may be chosen. Raises UsageError GT0633, GT0634, GT0635, GT0637,
        GT0638, InputError GT0332."""
        from graphtool.kernels.choice import tuning
        from graphtool.kernels.choice.rules import rules_of
        known = self.tuning
        if isinstance(known, (str, PathLike)):
            known = tuning.load(Path(known))
        return rules_of(self.numerics, self.kernels, known, self.assume, self.objective,
                        self.proofs)

    @property
    def numerics(self) -> str:
        """The class of numerics."""
        return self.precision


@dataclass(frozen=True, kw_only=True, slots=True)
class LoweringOptions(Choosing):
    """How a graph becomes a program. `as_is`: no pass runs over it, unless passes are named."""

    name: str | None = option(None, "--name", help="The name of the function in C.")
    passes: str | Sequence[str] | None = option(
        None, "--passes", words=passes, refused={TRAINING: _BUILT_IN, PROGRAM: _LOWER},
        help="The passes to run, separated by commas, with arguments in braces: "
        "fold{max_bytes=1024},dce.")
    index_checks: bool = option(
        True, "--index-checks/--no-index-checks", kind=bool,
        refused={PROGRAM: _LOWER},
        help="Whether a run fails with an error if an index is out of range. Without this check "
        "the nearest element is used, and no error is reported.")
    as_is: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Build(LoweringOptions):
    """How a unit becomes C and a library.

    `nodes`: the text of the node that makes each value, which debuggers then show; by default
    that of the graph that is compiled if `debug_lines` is true.
    """

    cc: str | None = option(
        None, "--cc", help="The C compiler; by default $CC, then cc, gcc, clang, then zig.")
    jobs: int | None = option(
        None, "-j", "--jobs", kind=int, least=1,
        help="The number of C files to compile at the same time.")
    exe: bool = option(
        False, "--exe", kind=bool, refused=_ALONE, help="Also make a program that reads and writes "
        ".npz files, or, from a training graph, one that trains.")
    static: bool = option(
        False, "--static", kind=bool, help="Make a static library (.a), and with --exe a program "
        "that needs no shared libraries.")
    single: bool = option(
        False, "--single", kind=bool, refused={LEVELS: ONE_LEVEL},
        help="Write the C as two files, NAME.c and NAME.h, which one command compiles. With "
        "--weights embed or c the weights are in NAME.c too.")
    threads_by: ThreadsBy = option(
        "pool", "--threads-by", words=partial(get_args, ThreadsBy), help="Whose threads divide a "
        "run. pool: the library's own, which sleep between runs. caller: those of the program, "
        "whose pool NAME_run_on takes. none: one thread runs alone.")
    weights: WeightsIn = option(
        "file", "--weights", words=partial(get_args, WeightsIn), refused={TRAINING: _BUILT_IN},
        help="Where the weights go. file: a file that is read at run time. embed: into the "
        "library. c: into the C, as arrays.")
    mpi: bool = option(
        False, "--mpi", kind=bool, refused=_ALONE | {MODEL: _STEP, PROGRAM: _STEP, LEVELS: _STEP},
        help="For a training graph: train in several processes, started by mpirun.")
    tokenizer: Pathlike | Tokenizer | None = option(
        None, "--tokenizer", kind=Path, metavar="FILE",
        refused=dict.fromkeys((MODEL, PROGRAM, TRAINING, LEVELS), _TEXT),
        help="For a language model: a tokenizer, as `graphtool tokenizer train` makes it. "
        "`generate` and the C program in the build write text with it.")
    debug_lines: bool = option(
        False, "--debug-lines", kind=bool, help="Let gdb and perf show the model's own lines: its "
        "Python source, or a listing of its nodes beside the C. The machine code stays the same.")
    keep: bool = option(
        False, "--keep", kind=bool, refused=_ALONE | {
            TRAINING: _BUILT_IN, LEVELS: ONE_LEVEL},
        help="Write the artifact of each stage to OUT/stages.")
    max_ram: str | int | None = option(
        None, "--max-ram", metavar="BYTES", refused=_UNMEASURED,
        help="The most bytes of the arena, the inputs, the outputs and static data together, as "
        "64K. If the kernels of the objective need more, those with fewer bytes are taken; if "
        "these do too, rows are streamed, as with --objective ram; else there is no build.")
    max_flash: str | int | None = option(
        None, "--max-flash", metavar="BYTES", refused=_UNMEASURED, help="The most bytes of code, "
        "constants and weights, as 256K, in the same way.")
    profile: Profile | None = option(
        None, "--profile", words=partial(get_args, Profile), refused=dict.fromkeys(
            (ENTRIES, TRAINING, LEVELS), _ONE_FUNCTION) | {
                PROGRAM: "name the model or the graph: its kernels are chosen for the profile"},
        help="safety: C99 without extensions for reviewers of safety-related software, of one "
        "thread, in strict numerics, with a test in C for each kernel and a list of the rules of "
        "MISRA C that it does not follow.")
    nodes: Mapping[str, str] | None = None

    @property
    def numerics(self) -> str:
        """The class of numerics: that of the profile, if there is one."""
        return "strict" if self.profile else self.precision

    def on_machine(self, target: Target) -> Target:
        """The target as the base class has it, with one thread if none are wanted, and in the
        language of the profile. Raises UsageError GT2119, GT2133."""
        from graphtool import target as targets
        target = Choosing.on_machine(self, target)  # slots: a dataclass has no super()
        if self.profile:
            from graphtool.compile.profile import for_profile
            return for_profile(self, target)
        return targets.for_threads(target, 1) if self.threads_by == "none" else target

    def fitted(self, target: Target) -> Build:
        """The options for a target without an operating system: the weights are constants of the
        C, and the library is static, of one thread; and those of a profile. Others keep theirs.

        Raises UsageError GT2108 for what needs a system.
        """
        if not target.freestanding:
            return replace(self, threads_by="none", weights="c") if self.profile else self
        if self.exe or self.mpi or self.weights == "embed":
            raise UsageError("GT2108", f"{target.name} has no operating system, which --exe, --mpi "
                                       "and --weights embed need", hint="leave them out: a library "
                             "and its header are made, and a board's project links them")
        return replace(self, static=True, threads_by="none", weights="c")

    @property
    def weights_in(self) -> WeightsIn:
        """Where the weights go; one file of C holds what is built in as arrays."""
        return "c" if self.single and self.weights == "embed" else self.weights


def refuse(how: Any, kind: str, where: str = "") -> None:
    """Raises UsageError GT3052, GT3054 or GT3055 if options are given that do not go with a kind
    of unit."""
    wrong = {name: option.refused[kind] for name, option in given(how) if kind in option.refused}
    if wrong:
        what, code = KINDS[kind]
        raise UsageError(code, f"{', '.join(wrong)} cannot go with {what}", where=where,
                         hint=next(iter(wrong.values())))
