"""build.json: its rows, and reading it. Writing is build.py's; nothing of the compiler is here."""

from __future__ import annotations

from pathlib import Path

import msgspec

from graphtool.errors import InputError
from graphtool.io import files

FORMAT, VERSION = "graphtool/build", 1


class PortRow(msgspec.Struct, forbid_unknown_fields=True):
    """An input or output: its name in the model, element type and shape."""

    name: str
    type: str
    shape: list[int | str]
    room: int | str | None = None  # elements at most, where the shape is computed by the run


class DimRow(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    min: int
    max: int | None


class SizeRow(msgspec.Struct, forbid_unknown_fields=True):
    """A size that a run computes, and what it checks it against."""

    name: str
    min: int | None
    max: int | None
    most: int | str | None = None  # in the dims, where that is less than `max`


class StepRow(msgspec.Struct, forbid_unknown_fields=True):
    """One kernel call: what it computes, where that came from, what it costs."""

    kernel: str
    label: str
    where: str
    flops: int | str
    barrier: bool
    choice: str = ""  # the kernel and its rivals, as choice/ writes them
    error: float = 0.0  # what the choice adds to it: rms over rms of the result, random data
    bytes: int | str = 0  # that it reads and writes; 0 in builds of older versions
    phase: str = ""  # of a training step: forward, backward, optimizer, or several with +
    serial: bool = False  # one thread does it, whatever a run has


class ThreadsRow(msgspec.Struct, forbid_unknown_fields=True):
    """How many threads a run uses: at most `most`, and one where `work` is less than `least`, the
    flops from which a second thread pays."""

    most: int
    work: int | str
    least: int


class CellRow(msgspec.Struct, forbid_unknown_fields=True):
    """One array of a training state: `offset` bytes into the block."""

    name: str
    type: str
    shape: list[int]
    offset: int


class ProgramRow(msgspec.Struct, forbid_unknown_fields=True):
    """A further function of a training build: NAME_loss, NAME_predict, NAME_init."""

    arena: int | str
    inputs: list[PortRow]
    outputs: list[PortRow]
    dims: list[DimRow]


class TrainingRow(msgspec.Struct, forbid_unknown_fields=True):
    """What a trainer needs of a training build. `model` names what a checkpoint holds."""

    name: str
    state_bytes: int
    state: list[CellRow]
    programs: dict[str, ProgramRow]
    loss: str
    optimizer: str
    target: str
    lr: float
    accumulate: int
    model: list[str]
    predict: list[str]
    distributed: bool = False  # its steps exchange gradients with other processes


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """build.json: all that a runtime needs, and what a person may ask."""

    format: str
    version: int
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
    levels: list[int] = []  # of x86-64: the versions in the library, best first
    weights_mode: str = "file"  # embed, c: the library has them, NULL is given for them
    training: TrainingRow | None = None
    precision: str = "default"  # the class of numerics: strict, default, fast
    sizes: list[SizeRow] = []  # what a run computes; in `dims` they stand behind the dims
    threads: ThreadsRow | None = None  # None in builds of older versions
    live: int | None = None  # bytes of the arena that live at once, at most; None: sizes are open


def read_manifest(build_dir: Path) -> Manifest:
    """build.json, checked. Raises InputError GT2201 for anything else."""
    path = build_dir / "build.json"
    raw = files.read_json(files.read_bytes(path), str(path))
    found = raw.get("format") if isinstance(raw, dict) else None
    if found != FORMAT:
        raise InputError("GT2201", f"expected a {FORMAT} directory, got {found or 'another'}",
                         where=str(build_dir))
    try:
        return msgspec.convert(raw, Manifest)
    except msgspec.ValidationError as error:
        raise InputError("GT2201", f"malformed build.json: {error}", where=str(path)) from error
