"""Imports StableHLO: text that JAX wrote (`import_stablehlo`), functions of JAX (`capture.py`).

Each operation has a handler function; the handlers stand in `families`, one file a family. The
parser is in `text`, the driver that runs a program through the handlers in `driver`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import graphtool.ops  # noqa: F401  (fills the table of ops)
from graphtool.errors import InputError, Undecided, Unsupported, UnsupportedError
from graphtool.escaping import line
from graphtool.front.assumptions import ROUNDS, Bounds, Facts
from graphtool.importers.least_sizes import least_sizes
from graphtool.importers.limits import Limits
from graphtool.importers.stablehlo.driver import own
from graphtool.importers.stablehlo.driver.boundary import fixed, main_function
from graphtool.importers.stablehlo.driver.convert import StablehloConversion
from graphtool.importers.stablehlo.driver.registry import HANDLERS, stablehlo
from graphtool.importers.stablehlo.driver.session import BoundaryNames
from graphtool.importers.stablehlo.families import (  # noqa: F401  (each fills the table)
    check,
    chlo,
    complex,
    composite,
    control,
    elementwise,
    former,
    index,
    lapack,
    movement,
    order,
    product,
    random,
    reduce,
    scatter,
    window,
)
from graphtool.importers.stablehlo.text.parser import parse
from graphtool.importers.stablehlo.text.tree import MlirModule
from graphtool.ir.graph import Module

__all__ = ["HANDLERS", "BoundaryNames", "import_stablehlo", "import_text", "stablehlo", "support"]

_BYTES = 1 << 31


def import_stablehlo(path: Path, *, dynamic: Mapping[str, Bounds] | None = None,
                     limits: Limits | None = None, inputs: Sequence[str] = (),
                     function: str = "") -> Module:
    """The module of a `.mlir` file with StableHLO text: of `function`, by default of `main`.

    `dynamic` bounds the open sizes, `inputs` gives them numbers, as `x:f32[4,3]`. Raises InputError
    GT1301 for a file that is no text, GT13xx with line and column for a fault in it, UsageError
    GT1115 for inputs that do not fit, UnsupportedError GT1310 that lists everything unsupported.
    """
    try:
        return import_text(read(path), dynamic=dynamic, limits=limits,
                           names=BoundaryNames(function=function), inputs=inputs)
    except (InputError, UnsupportedError) as error:
        if line(path.name) not in error.where:
            error.within(path.name)
        raise


def read(path: Path) -> str:
    """The text of a file. Raises InputError GT1301 if it is none."""
    try:
        if path.stat().st_size > _BYTES:
            raise InputError("GT1301", f"the file has more than {_BYTES} bytes", where=path.name)
        return path.read_bytes().decode()
    except OSError as error:
        raise InputError("GT1301", f"the file cannot be read: {error.strerror}",
                         where=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError("GT1301", "the file is no text", where=path.name,
                         hint="graphtool reads the text form of StableHLO; of bytecode "
                              "jax.export.deserialize(…).mlir_module() makes it") from error


def import_text(text: str, *, dynamic: Mapping[str, Bounds] | None = None,
                limits: Limits | None = None, names: BoundaryNames | None = None,
                inputs: Sequence[str] = ()) -> Module:
    """The module of StableHLO text, as `import_stablehlo` makes it."""
    program, limits, names = parse(text), limits or Limits(), names or BoundaryNames()
    if inputs:
        plain = StablehloConversion(program, limits, Facts.given({}), {}, names)
        main = main_function(program, names.function)
        dynamic = {**(dynamic or {}), **fixed(plain, main, inputs)}
    importer, module = _settled(program, dynamic or {}, limits, names)
    if module is None:
        items = importer.unsupported()
        count = sum(len(i.places) or 1 for i in items)
        raise UnsupportedError("GT1310", f"the program needs {count} thing"
                               + (" that is" if count == 1 else "s that are") + " not supported",
                               items)
    return replace(module, requires=tuple(dict.fromkeys(
        (*module.requires, *importer.knowledge.required))))


def support(path: Path) -> list[Unsupported]:
    """Everything in a `.mlir` file that is not supported; empty if it can be imported."""
    importer, _ = _settled(parse(read(path)), {}, Limits(), BoundaryNames())
    return list(importer.unsupported())


def _settled(program: MlirModule, dynamic: Mapping[str, Bounds], limits: Limits,
             names: BoundaryNames) -> tuple[StablehloConversion, Module | None]:
    """The last of several imports: each knows what the one before found of sizes."""
    facts = Facts.given(dynamic)
    main = main_function(program, names.function)
    facts = replace(facts, steps={**own.steps(main), **facts.steps})
    for _ in range(ROUNDS):
        importer = StablehloConversion(program, limits, facts, dynamic, names)
        fault, module = None, None
        try:
            module = importer.run()
        except Undecided as error:
            fault = error
        better = importer.promises.better(importer.knowledge.better())
        if module is not None:
            better = better.at_least(least_sizes(
                (d for n in module.graph.nodes for v in n.outputs for d in v.type.shape),
                importer.knowledge.free))
        if better == facts:
            break
        facts = better
    if fault is not None:
        raise fault
    return importer, module
