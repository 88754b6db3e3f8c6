"""A language in which kernels are emitted: one record, which all of `emit` that knows threads or
spells kernels asks.

The program around the kernels, which checks what the caller gives, plans memory and runs the steps,
is C in every language; `Steps` says how it starts a kernel and waits for it. Texts have fields in
braces, which the docstrings name; an empty text writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from graphtool.dtypes import TABLE, DType
from graphtool.errors import InternalError, UsageError, one_of
from graphtool.loops.contract import HOME
from graphtool.loops.forms import Rule, choose, limited, over, steps
from graphtool.loops.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The iterations of a loop that one worker runs: `first`, every `step`-th from there, below
    `end`; `{n}` is the extent, `{size}` the type of indices. `before` and `after` are lines around
    the loop, and `reduce` those around one that reduces: `{acc}` the scalar, `{fn}` the function,
    `{op}` the operator or else the function, `{t}` the suffix of its type, `{zero}` where it
    starts, which changes no result.
    """

    first: str = "0"
    end: str = "{n}"
    step: str = ""
    before: str = ""
    after: str = ""
    reduce: tuple[str, str] = ("", "")


ALL = Share()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """How those who run a kernel divide it.

    `params` are the first parameters of every kernel, by which it knows its part of the work, and
    `args` what it hands to the function of a template in their place. `alone` begins a kernel that
    one part computes. `outer` is the share of a loop that is divided and `inner` of one whose
    iterations are independent; `flat` is that of a loop which is both, and `row` that of the loops
    of a hook, which one worker runs.

    Where several workers are a team, which runs an iteration of an outer loop together, `single` is
    true in one of them: it stores what all of them computed between the inner loops, and `meet`
    waits for the team, which are `team` workers. `narrow` is for kernels whose rows are short:
    there a team is smaller, and `teams` of them are launched as one. `memory` declares the memory
    that a team needs to reduce.

    A kernel with phases has the parameter `type` `name`, which `header` declares; `each` heads a
    block that runs once for each part, whose number is `{part}`, and `wait` ends a phase. `private`
    is the worker's own memory: `{pointer}` for the first one, and as much elsewhere for the others.
    """

    params: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    alone: str = ""
    outer: Share = ALL
    inner: Share = ALL
    flat: Share = ALL
    row: Share = ALL
    single: str = ""
    meet: str = ""
    team: int = 1
    teams: int = 1
    narrow: Workers | None = None
    memory: str = ""
    header: str = ""
    type: str = ""
    name: str = "this_thread"
    private: str = ""
    each: str = ""
    wait: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """How a worker computes neighbouring elements that are one piece of memory.

    `array` declares `{name}`, of `{width}` elements of `{type}`; `read` fills it from `{place}`,
    and `write` stores it there, `{bytes}` in all. `each` is the line before a loop over them.
    """

    array: str
    read: str
    write: str
    each: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """How the C around the kernels runs them.

    `header` has what these texts call. `body` heads the function of all steps, in which `unused`
    names what a program without steps does not read; `after` follows it. `start` runs it with
    `{threads}`, whose number is `most` if the caller leaves it open; without `most` there is one.
    Each beyond the first has `{room}` bytes of its own.

    `step` runs a kernel: `{call}` is the call, of `{name}` with `{args}`, each of them as
    `argument` hands it over; `{at}` is its number and how many there are, `{shares}` and `{pieces}`
    its division, `{extent}` the iterations of the loop that is divided, `{teams}` how many teams
    have work in it and `{shared}` the bytes of memory that each is given; the first `{pointers}`
    arguments are buffers, the others have the type `{index}`. Its first arguments are `part`;
    `phased` and `whole` are the same for a kernel with phases, and `worker` is the argument for its
    worker; `private` is as that of `Workers`.

    Where `given` is not empty, the threads are the caller's: these are the last parameters of
    NAME_run_on, `{name}` being NAME, and `{big}` the same in capitals.

    `barrier` waits for the kernels so far, `meet` for all workers, `leader` is true for one of
    them; `loosen` lets a run end before each worker has seen every step. `shares` is how many
    workers there are, `pieces` how many pieces the share of one has at most, of which another that
    is done early takes some. `read` is what kernels have left
    behind `{pointer}` as the element `{place}`.
    """

    header: str
    body: str
    start: str
    step: str
    most: str = ""
    given: tuple[str, ...] = ()
    argument: str = "{arg}"
    part: tuple[str, ...] = ()
    phased: str = ""
    whole: tuple[str, ...] = ()
    worker: str = ""
    private: str = ""
    unused: str = ""
    barrier: str = ""
    meet: str = ""
    leader: str = ""
    read: str = "{pointer}[{place}]"
    loosen: str = ""
    after: str = ""
    shares: str = "1"
    pieces: int = 1


class Image(NamedTuple):
    """One file of kernels inside a library, for devices of the architecture `arch` or later ones; 0
    is any. `text`: the driver compiles it. `machine` is what the compiler calls the architecture;
    `command` makes the file by hand; "": it is a source."""

    file: str
    arch: int
    text: bool
    machine: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Devices with memory of their own, on which kernels run.

    `images` gives the files of kernels that a library contains, from its name and the architectures
    that it is built for. `missing` says why a run finds no device, `memory` what other memory of
    the device the functions take. `replays`: the launches of a run are recorded, and started again
    as one. `compiles`: the driver compiles the kernels where they run. Then their file has the
    headers in it, the C does not declare them, and the library keeps the compiler's messages.
    """

    images: Callable[[str, Sequence[int]], list[Image]]
    missing: str
    memory: str = ""
    replays: bool = False
    compiles: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language.

    `name` is what targets and the contracts of kernels call it, and `ending` ends the names of its
    files of kernels. `includes` are the headers of such a file, and `library` says which more it
    needs: those whose pattern occurs in it. `settings` are the lines before all else.

    `kernel` and `function` head a kernel and a function that only kernels call. A kernel's first
    line is `begins`; before it stands `asks` for each constant `{name}`, of which a kernel asks for
    `{bytes}`. `pointer` is the
    type of one to elements of `{type}`, `{const}` being `const ` or nothing, and `own` that of one
    to a worker's own memory. A kernel's parameter `{name}` for a buffer is `buffer`, from which the
    line `bind` makes the pointer; where templates read it, `aligned` tells the compiler at which
    addresses buffers start. `size` is the type of indices, and `small` that of kernels whose
    indices fit 32 bits; `pieces` says how a worker takes several elements at once. `types` has the
    spelling of element types, and `scalars` that of scalar functions, where it is not C's; `forms`
    are the rules by which expressions take forms that this language's compilers prefer.

    `rows` has the statement, by its function, that reduces a whole row of float32 to one scalar:
    `{acc}` is the scalar, `{place}` the first element, `{n}` the number of elements. `sums`: how
    many vectors of partial sums a loop has that sums floats; with 0 the compiler decides. With
    `scales_rows` one function scales a row of sums and rounds it to bytes.

    `device`: where kernels run on a device. Then all of them are in one file. `called` is how the
    steps run on threads of the caller's, if they can.

    `plain`: the text is ISO C99 without extensions, for one thread. Scalar functions stand in it as
    functions, without the headers of kernels; the weights are arrays of their own types.
    """

    name: str
    title: str
    workers: Workers
    steps: Steps
    ending: str = ".c"
    includes: tuple[str, ...] = ()
    library: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    settings: Callable[[Program], list[str]] = lambda _: []
    kernel: str = "void {name}({params})"
    begins: str = ""
    asks: str = ""
    function: str = "static void {name}({params})"
    pointer: str = "{const}{type} *"
    own: str = "{const}{type} *"
    buffer: str = "{pointer}{name}"
    bind: str = ""
    aligned: str = ""
    restrict: str = "restrict"
    size: str = "int64_t"
    small: str = ""
    pieces: Pieces | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, str] = field(default_factory=dict)
    forms: tuple[Rule, ...] = ()
    rows: Mapping[str, str] = field(default_factory=dict)
    sums: int = 0
    scales_rows: bool = False
    device: Device | None = None
    called: Steps | None = None
    plain: bool = False

    @property
    def converts_rows(self) -> bool:
        """Whether a loop may convert the rows that it reads and writes as a whole."""
        return "rows.h" in self.library

    def type(self, dtype: DType) -> str:
        """The type of an element that has its own bytes."""
        return self.types.get(dtype.short, dtype.c)


LANGUAGES: dict[str, Language] = {}
CALLER = "caller"  # whose threads run a program, as its record says: the caller's


def register(row: Language) -> Language:
    """Add a language to the table. Called at import only."""
    if row.name in LANGUAGES:
        raise InternalError("GT7001", f"the language {row.name} is declared twice")
    LANGUAGES[row.name] = row
    return row


def named(name: str) -> Language:
    """The row of a language. Raises UsageError GT2105 if there is none."""
    if name not in LANGUAGES:
        raise UsageError("GT2105", f"unknown language {name!r}", hint=one_of(name, LANGUAGES))
    return LANGUAGES[name]


def language_of(program: Program) -> Language:
    """The language of a program's kernels, on threads of the caller's if it is for them. Raises
    UsageError GT2105 if it is not in the table."""
    row = named(program.meta.get("language", HOME))
    on_callers = program.meta.get("threads") == CALLER and row.called
    in_order = program.meta.get("precision") == "strict" or program.lanes == 1
    row = replace(row, sums=0 if in_order else row.sums * program.lanes,
                  scales_rows=program.lanes == 1)
    return replace(row, steps=row.called) if on_callers and row.called else row


# ---- C -------------------------------------------------------------------------------------------

def settings(program: Program) -> list[str]:
    """The lines of C that hold what the program's code relies on, whatever flags compile it."""
    lanes = program.lanes
    lines = [f"/* weights are packed, and kernels written, for vectors of {lanes} floats */"
             if lanes > 1 else "/* kernels without vectors */", f"#define GT_LANES {lanes}"]
    if program.meta.get("precision") == "strict":
        lines += ["/* strict: sums in the order of their terms, no multiplication and addition are "
                  "fused */", "#define GT_IN_ORDER", "#ifdef __clang__",
                  "#pragma STDC FP_CONTRACT OFF", "#else",
                  '#pragma GCC optimize("fp-contract=off")', "#endif"]
    if program.meta.get("assume") == "normal":
        lines += ["/* subnormal numbers count as 0 while a run computes */",
                  "#define GT_NORMAL"]
    if program.meta.get("threads") == CALLER:
        lines += ["/* runs have threads, whatever flags compile this: the caller's */",
                  "#undef GT_THREADS", "#define GT_THREADS 1"]
    return lines


_WHOLE, _PACKED = ("|".join(d.short for d in TABLE if d.is_integer and d.is_packed is packed)
                   for packed in (False, True))
_FLOATS = "|".join(d.short for d in TABLE if d.is_float and d.bits <= 8)
_PART, _NEXT = "gt_part({n}, t, threads)", "gt_part({n}, t + 1, threads)"
_SIMD, _SUM = "GT_SIMD", ("GT_SIMD_REDUCE({op}, {acc})", "")
_VECTORS = Share(before=_SIMD, reduce=_SUM)

_STEPS = Steps(
    header="runtime.h", body="static void run_thread(const void *state, gt_worker *w)",
    start="gt_run(run_thread, &s, {threads}, {room});", most="gt_processors()",
    part=("w->piece", "w->pieces"), whole=("w->thread", "w->threads"), worker="w",
    private="gt_work(w, {pointer})",
    step="GT_STEP({at}, gt_begin(w, {shares}, {pieces}), {call});",
    phased="GT_PHASED({at}, {call});", unused="(void)s, (void)w;",
    barrier="gt_barrier(w);", meet="gt_meet(w);", leader="w->thread == 0",
    loosen="GT_LOOSEN(w);", after="GT_PROFILED({program})", shares="w->threads",
    pieces=4)

C = register(Language(
    name="c", title="GNU C with OpenMP's pragmas for vectors, and the threads of team.h",
    includes=("nest.h",), settings=settings,
    library={
        "exponentials.h": re.compile(r"\bgt_exponentials_f32\("),
        "extremes.h": re.compile(r"\bgt_extreme_m(ax|in)_f32\("),
        "fields.h": re.compile(r"\bgt_fields?(_|\d)"),
        "integers.h": re.compile(rf"\bgt_(?!bitcast_|row_)\w+_({_WHOLE}|bool)\("),
        "narrow.h": re.compile(
            rf"\bgt_(?!fields_)(f64_to_odd|\w+_({_PACKED})|\w*({_FLOATS})\w*)\("),
        "nest.h": re.compile(r"\bgt_(floordiv|floormod|over_f32|bitcast_\w+)\("),
        "rows.h": re.compile(r"\bgt_row_(of|to|cast|round|at|by)_\w+\("),
        "scaled.h": re.compile(r"\bgt_scaled_\w+\("),
        "special.h": re.compile(r"\bgt_(digamma|polygamma|erf_inv|igammac?|i[01]e)_f(32|64)\("),
    },
    function="GT_INLINE void {name}({params})",
    forms=(choose, limited, over, steps),
    rows={fn: f"{{acc}} = gt_extreme_{fn}_f32({{acc}}, {{place}}, {{n}});"
          for fn in ("max", "min")}, sums=4,
    workers=Workers(
        params=("int t", "int threads"), args=("t", "threads"), alone="(void)t, (void)threads;",
        outer=Share(first=_PART, end=_NEXT), inner=_VECTORS,
        flat=Share(first=_PART, end=_NEXT, before=_SIMD, reduce=_SUM), row=_VECTORS,
        header="team.h", type="gt_worker *", private="gt_work(this_thread, {pointer})",
        each="GT_EACH(this_thread, {part})", wait="gt_barrier(this_thread)"),
    steps=_STEPS, called=replace(
        _STEPS, header="callers.h", most="1", given=("{name}_pool *run", "void *pool"),
        start="if (!gt_run_on(run_thread, &s, {threads}, {room}, run, pool))"
              " return {big}_BAD_POOL;")))
