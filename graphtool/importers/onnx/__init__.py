"""Imports ONNX models as graphs: `import_onnx` for files, `import_model` for ModelProtos,
`support`.

Each ONNX operator has a handler function; the handlers stand in `families`, one file a family. The
driver in `driver.convert` runs a model's nodes through them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import graphtool.ops  # noqa: F401  (fills the table of ops)
from graphtool.errors import InputError, Undecided, Unsupported, UnsupportedError
from graphtool.escaping import line
from graphtool.front.assumptions import ROUNDS, Bounds, Facts
from graphtool.front.authored import Operation
from graphtool.importers.least_sizes import least_sizes, not_empty
from graphtool.importers.limits import Limits
from graphtool.importers.onnx.driver.convert import OnnxConversion
from graphtool.importers.onnx.driver.inputs import Parts
from graphtool.importers.onnx.driver.reader import read_model
from graphtool.importers.onnx.driver.registry import HANDLERS
from graphtool.importers.onnx.driver.registry import add as onnx_handler
from graphtool.importers.onnx.families import (  # noqa: F401  (each fills the table)
    attention,
    control,
    einsum,
    elementwise,
    index,
    legacy,
    loops,
    nn,
    pool,
    quant,
    random,
    recurrent,
    reduce,
    resample,
    reshaping,
    sampling,
    scans,
    selection,
    sequence,
    shape,
    signal,
    slices,
)
from graphtool.importers.onnx.wing import (  # noqa: F401  (each fills the table)
    classic,
    contrib,
    contrib_attention,
    contrib_quant,
    packed_sequences,
    texts,
    training,
    trees,
)
from graphtool.ir.graph import Module

__all__ = ["HANDLERS", "import_model", "import_onnx", "onnx_handler", "support"]

def import_onnx(path: Path, *, dynamic: Mapping[str, Bounds] | None = None,
                fixed: Mapping[str, Any] | None = None,
                made_of: Mapping[str, Parts] | None = None,
                limits: Limits | None = None,
                operations: list[Operation] | None = None) -> Module:
    """The module of a `.onnx` file.

    `dynamic` maps the name of an open dimension to its bounds (with a step, if there is a third
    number; a text names an equal size), `fixed` maps the name of an input to
    its constant value, and `made_of` gives the parts of inputs that are sequences or optionals, as
    in `import_model`.

    Raises UnsupportedError GT1020 that lists everything unsupported, InputError GT10xx for a faulty
    model.
    """
    try:
        return import_model(read_model(path), path.parent, dynamic=dynamic, fixed=fixed,
                            made_of=made_of, limits=limits, operations=operations)
    except InputError as error:
        if line(path.name) not in error.where.split("\n"):
            error.within(path.name)
        raise


def import_model(model: Any, base_dir: Path | None = None, *,
                 dynamic: Mapping[str, Bounds] | None = None,
                 fixed: Mapping[str, Any] | None = None,
                 made_of: Mapping[str, Parts] | None = None,
                 limits: Limits | None = None,
                 operations: list[Operation] | None = None) -> Module:
    """The module of a ModelProto; `base_dir` is the folder of its external data.

    `made_of` gives, for an input that is a sequence or an optional, the tensors that it consists
    of. They become inputs of the module with the names `NAME.0`, `NAME.1` and so on. The model's
    nodes, as their author wrote them, are added to `operations`.
    """
    importer, module = _settled(model, base_dir, dynamic or {}, fixed or {}, made_of, limits,
                                operations is not None)
    if operations is not None:
        operations += importer.operations
    if module is None:
        items = tuple(importer.unsupported())
        count = sum(len(i.places) for i in items)
        raise UnsupportedError("GT1020", f"the model needs {count} thing"
                               + (" that is" if count == 1 else "s that are") + " not supported",
                               items, where=model.graph.name)
    return module


def _settled(model: Any, base_dir: Path | None, dynamic: Mapping[str, Bounds],
             fixed: Mapping[str, Any], made_of: Mapping[str, Parts] | None,
             limits: Limits | None, records: bool) -> tuple[OnnxConversion, Module | None]:
    """The last of several imports: each knows what the one before had to assume of sizes."""
    facts = Facts.given(dynamic)
    for _ in range(ROUNDS):
        importer = OnnxConversion(model, base_dir, dynamic, fixed, made_of, limits, facts,
                                  records)
        fault, module = None, None
        try:
            module = importer.run()
        except InputError as error:
            fault = error
        better = _better(importer, module, fault)
        if better == facts:
            break
        facts = better
    if fault is not None:
        raise fault
    if module is not None:
        importer.inputs.check_names(dynamic)
    return importer, module


def _better(importer: OnnxConversion, module: Module | None, fault: InputError | None) -> Facts:
    """What the next import may know. Sizes without bounds may be 0, unless the model cannot be
    imported so, or would be less simple."""
    knowledge = importer.knowledge
    untold = {n: s for n, s in knowledge.free.items() if n in knowledge.untold}
    better = knowledge.facts if fault is not None and not isinstance(fault, Undecided) else \
        knowledge.better()
    if knowledge.not_zero:
        return better.at_least(dict.fromkeys(knowledge.not_zero, 1))
    if module is None:
        return better.at_least({n: 1 for n, s in untold.items() if s.lo == 0})
    better = better.at_least(not_empty(module.graph, knowledge.assumed, untold))
    shapes = (d for n in module.graph.nodes for v in n.outputs for d in v.type.shape)
    return better.at_least(least_sizes((*shapes, *knowledge.rooms), knowledge.free))


def support(path: Path) -> list[Unsupported]:
    """Everything in the model that is not supported; empty if it can be imported."""
    importer = OnnxConversion(read_model(path), path.parent, {}, {})
    importer.run()
    return importer.unsupported()
