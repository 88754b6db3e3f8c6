"""ONNX models into graphs: `import_onnx` for files, `import_model` for protos, `support`.

Operators are in one file a family, each a function in the registry; the driver is `convert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import graphtool.ops  # noqa: F401  (fills the table of ops)
from graphtool.errors import InputError, Unsupported, UnsupportedError
from graphtool.importers.onnx.driver.convert import Importer
from graphtool.importers.onnx.driver.inputs import Parts
from graphtool.importers.onnx.driver.reader import read_model
from graphtool.importers.onnx.driver.registry import HANDLERS
from graphtool.importers.onnx.driver.registry import add as onnx_handler
from graphtool.importers.onnx.families import (  # noqa: F401  (each fills the table)
    attention,
    classic,
    contrib,
    contrib_attention,
    contrib_images,
    contrib_quant,
    control,
    einsum,
    elementwise,
    gradient,
    grids,
    index,
    labels,
    legacy,
    loops,
    ngrams,
    nn,
    pool,
    quant,
    random,
    recurrent,
    reduce,
    resample,
    sampling,
    scans,
    selection,
    sequence,
    shape,
    signal,
    slices,
    strings,
    training,
    trees,
)
from graphtool.ir.graph import Module

__all__ = ["HANDLERS", "import_model", "import_onnx", "onnx_handler", "support"]

Bounds = Mapping[str, tuple[int, int | None]]


def import_onnx(path: Path, *, dynamic: Bounds | None = None,
                fixed: Mapping[str, Any] | None = None,
                made_of: Mapping[str, Parts] | None = None) -> Module:
    """The module of a `.onnx` file. `dynamic` bounds named dims, `fixed` pins inputs' values,
    `made_of` says what sequences and optionals consist of, as in `import_model`.

    Raises UnsupportedError GT1020 with all that is refused, InputError GT10xx for a bad model.
    """
    try:
        return import_model(read_model(path), path.parent, dynamic=dynamic, fixed=fixed,
                            made_of=made_of)
    except InputError as error:
        error.where = "\n".join(s for s in (path.name, error.where) if s and s != path.name) \
            if path.name not in error.where.splitlines() else error.where
        raise


def import_model(model: Any, base_dir: Path | None = None, *, dynamic: Bounds | None = None,
                 fixed: Mapping[str, Any] | None = None,
                 made_of: Mapping[str, Parts] | None = None) -> Module:
    """The module of a ModelProto; `base_dir` is where its external data lies.

    `made_of` says of inputs that are sequences or optionals which tensors they consist of; these
    are the module's inputs then, as `NAME.0`, `NAME.1` and so on.
    """
    importer = Importer(model, base_dir, dynamic or {}, fixed or {}, made_of)
    module = importer.run()
    if module is None:
        items = tuple(importer.unsupported())
        count = sum(len(i.places) for i in items)
        raise UnsupportedError("GT1020", f"the model needs {count} things that are not supported",
                               items, where=model.graph.name)
    return module


def support(path: Path) -> list[Unsupported]:
    """All that is unsupported in the model; empty where it can be imported."""
    importer = Importer(read_model(path), path.parent, {}, {})
    importer.run()
    return importer.unsupported()
