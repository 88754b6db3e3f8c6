"""Models in fewer bits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.api.arguments import checked
from graphtool.api.options import Array, Pathlike
from graphtool.ir.graph import Module
from graphtool.passes.quantise.calibrate import SAMPLES, batches, from_arrays
from graphtool.transforms.quantising import Quantisation, quantised


@checked
def quantise(module: Module, how: Quantisation | None = None,
             examples: Mapping[str, Array] | Pathlike | None = None, *,
             samples: int = SAMPLES) -> Module:
    """The module with its layers in fewer bits.

    `examples` are arrays by the names of the inputs, with examples along the first axis, or a file
    or directory of them; at most `samples` are used. Without `how` it is `Quantisation()`, static
    int8, with examples, else dynamic int8. Raises UsageError GT0643, GT0644, InputError GT0640,
    GT0641, GT0642, GT0645.
    """
    how = how or Quantisation(("static",) if examples is not None else ("dynamic",))
    if examples is None:
        return quantised(module, how)
    data = from_arrays(examples, module, samples) if isinstance(examples, Mapping) else (
        batches(Path(examples), module, samples))
    return quantised(module, how, data)
