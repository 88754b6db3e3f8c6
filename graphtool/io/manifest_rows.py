"""The rows of build.json, as `io/manifest.py` reads them.

Each run of a model imports this first: methods that nobody calls (eq, repr) would take 4 ms.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidates from which a plan was chosen: microseconds by plan, the chosen one first.

    `site` says what is computed, for example `product{m=8,n=64,k=64}`; `by` is "cost" if the times
    were estimated, "tuned" if they were measured.
    """

    site: str
    by: str
    us: dict[str, float]


@dataclass(eq=False, repr=False)
class PortRow:
    """An input or output: its name in the model, element type and shape."""

    name: str
    type: str
    shape: list[int | str]
    room: int | str | None = None  # elements at most, where the shape is computed by the run
    below: list[int | str] = field(default_factory=list)  # made-up integers are less than these
    scale: float = 0.0  # of a port whose bytes q are real numbers (q - zero)·scale; 0: of no such
    zero: int = 0


@dataclass(eq=False, repr=False)
class DimRow:
    """An open dimension and its bounds; `max` None: none. Its values are `offset`,
    `offset + step` and so on."""

    name: str
    min: int
    max: int | None
    step: int = 1
    offset: int = 0


@dataclass(eq=False, repr=False)
class SizeRow:
    """A size that a run computes, with the bounds that the run checks."""

    name: str
    min: int | None
    max: int | None
    most: int | str | None = None  # a bound in terms of the dims, if that is less than `max`


@dataclass(eq=False, repr=False)
class AssumedRow:
    """What was assumed of values of the graph as they were rewritten: the class of soundness, the
    pass with its rule or kernel, and the reason."""

    needs: str
    by: str
    why: str
    values: list[str]


@dataclass(eq=False, repr=False)
class StepRow:
    """One kernel call: what it computes, its source location and its cost."""

    kernel: str
    label: str
    where: str
    flops: int | str
    barrier: bool
    choice: Choice | None = None  # the alternatives of the kernel
    error: float = 0.0  # rms of the kernel's error / rms of the result, on random data
    bytes: int | str = 0  # that it reads and writes; 0 in builds of older versions
    phase: str = ""  # of a training step: forward, backward, optimizer, or several with +
    serial: bool = False  # one thread computes it, however many a run has
    assumes: str = "nothing"  # finite: its kernel can spread or move a NaN or an infinity


@dataclass(eq=False, repr=False)
class ThreadsRow:
    """How many threads a run uses: at most `most`, and one for each `least` flops of the `work`
    beside the first. Each but the first works in `memory` bytes that the library keeps. They are
    `by` the library's own pool, by the caller's, of which NAME_run uses none, or there is none."""

    most: int
    work: int | str
    least: int
    memory: int | str = 0
    by: str = "pool"


@dataclass(eq=False, repr=False)
class CellRow:
    """One array of a training state: `offset` bytes into the block."""

    name: str
    type: str
    shape: list[int]
    offset: int


@dataclass(eq=False, repr=False)
class ProgramRow:
    """A further function of a training build: NAME_loss, NAME_predict, NAME_init."""

    arena: int | str
    inputs: list[PortRow]
    outputs: list[PortRow]
    dims: list[DimRow]
    requires: list[tuple[int | str, int | str]] = field(default_factory=list)
    sizes: list[SizeRow] = field(default_factory=list)  # computed by a run


@dataclass(eq=False, repr=False)
class TrainingRow:
    """What a trainer needs of a training build. `model` has by name what a checkpoint of the model
    holds: an array, or the two parts of a complex one. `fixed` are the arrays that no step changes:
    bytes of the memory that NAME_fixed returns."""

    name: str
    state_bytes: int
    state: list[CellRow]
    programs: dict[str, ProgramRow]
    loss: str
    optimizer: str
    target: str
    lr: float
    accumulate: int
    model: dict[str, list[str]]
    predict: list[str]
    distributed: bool = False  # its steps exchange gradients with other processes
    fixed: list[CellRow] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class RolesRow:
    """Which port of an entry point is what in a language model, as emit/text_program.py says."""

    tokens: int
    position: int
    places: int
    mask: int
    logits: int
    size: int
    room: int
    least: int
    most: int
    last: bool
    texts: int = 1  # rows of tokens, each a text


@dataclass(eq=False, repr=False)
class LanguageRow:
    """What `generate` needs: the tokenizer's file, and the roles of each entry point's ports."""

    tokenizer: str
    roles: dict[str, RolesRow]


@dataclass(eq=False, repr=False)
class EntryRow:
    """What the manifest says of one of several entry points, in fields of the same names."""

    arena: int | str
    inputs: list[PortRow]
    outputs: list[PortRow]
    dims: list[DimRow]
    donations: list[tuple[int, int]]
    steps: list[StepRow]
    assumes: str = "nothing"
    sizes: list[SizeRow] = field(default_factory=list)
    threads: ThreadsRow | None = None
    requires: list[tuple[int | str, int | str]] = field(default_factory=list)
    live: int | None = None
    assumed: list[AssumedRow] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class Manifest:
    """build.json: everything that a runtime needs, and facts for people."""

    format: str
    version: int
    since: str
    name: str
    key: str
    target: str
    compiler: str
    flags: list[str]
    library: str
    header: str
    weights: str
    weights_offset: int
    weights_bytes: int
    arena: int | str
    inputs: list[PortRow]
    outputs: list[PortRow]
    dims: list[DimRow]
    donations: list[tuple[int, int]]
    steps: list[StepRow]
    files: dict[str, str]
    executable: str = ""
    levels: list[int] = field(default_factory=list)  # of x86-64, in the library, best first
    weights_mode: str = "file"  # embed, c: in the library, which is passed NULL for them
    training: TrainingRow | None = None
    precision: str = "default"  # the class of numerics: strict, default, fast
    assumes: str = "nothing"  # finite where a step or a rewrite says so; normal: no subnormals
    sizes: list[SizeRow] = field(default_factory=list)  # computed by a run; behind the dims
    threads: ThreadsRow | None = None  # None in builds of older versions
    requires: list[tuple[int | str, int | str]] = field(default_factory=list)  # equal sizes
    index_checks: bool = False  # whether a run finds indices out of range
    live: int | None = None  # bytes of the arena that live at once, at most; None: sizes are open
    device: str = ""  # the language of kernels that run on a device, which has the weights
    machine: str = ""  # the row of the table of machines for the choice of kernels
    assumed: list[AssumedRow] = field(default_factory=list)  # by rewrites and choices of kernels
    entry: str = ""  # the entry point that the rows above describe, where a build has several
    entries: dict[str, EntryRow] = field(default_factory=dict)  # the others
    language: LanguageRow | None = None
