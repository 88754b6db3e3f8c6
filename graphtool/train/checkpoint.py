"""Checkpoints: the state of a training run in one safetensors file, and the model's weights for
torch.

Files are replaced atomically, so that a run that is killed at any moment leaves a complete
checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from graphtool.dtypes import of_numpy
from graphtool.errors import InputError
from graphtool.io import files
from graphtool.io.versions import CHECKPOINT, checked
from graphtool.train.model import TrainModel
from graphtool.transforms.training.norms import COUNTER
from graphtool.transforms.training.weights import fitted, joined, split

Array = np.ndarray[Any, Any]
STATE, MODEL = "checkpoint.safetensors", "model.safetensors"


def save(model: TrainModel, run: Path, progress: Mapping[str, Any]) -> None:
    """Write checkpoint.safetensors with the whole state, and model.safetensors with torch's
    names."""
    files.write_bytes(run / STATE, _bytes(model.state, {
        "progress": json.dumps({**CHECKPOINT.head, **progress})}))
    files.write_bytes(run / MODEL, _model(model))


def model_arrays(model: TrainModel) -> dict[str, Array]:
    """The arrays for `load_state_dict`: parameters, trained or not, and buffers."""
    held = {**model.fixed, **model.state}
    return {name: joined([held[p] for p in parts]) for name, parts in model.row.model.items()}


def _model(model: TrainModel) -> bytes:
    return _bytes(model_arrays(model), {"format": "pt"})


def _bytes(arrays: Mapping[str, Array], metadata: dict[str, str]) -> bytes:
    data: bytes = safetensors.numpy.save({n: np.ascontiguousarray(a).reshape(a.shape)
                                          for n, a in arrays.items()}, metadata)
    return data


def restore(model: TrainModel, run: Path) -> dict[str, Any]:
    """Restore the state from a checkpoint; return the progress that `save` was given.

    model.safetensors is written anew where it is not of that state: a run that was killed between
    the two files left it one save older.
    Raises InputError GT3075 for a checkpoint of another training, GT3077 for a file that is not a
    checkpoint, GT0334 for one of a newer version; then the state is not changed.
    """
    path = run / STATE
    arrays = read(path)
    progress = _progress(path)
    odd = [n for n in model.state if n not in arrays or arrays[n].shape != model.state[n].shape
           or arrays[n].dtype != model.state[n].dtype]
    if odd or len(arrays) != len(model.state):
        name = odd[0] if odd else next(n for n in arrays if n not in model.state)
        raise InputError("GT3075", f"the checkpoint is of another training: {name}",
                         where=str(path))
    for n, a in arrays.items():
        model.state[n][...] = a
    weights = _model(model)
    if not (run / MODEL).is_file() or files.read_bytes(run / MODEL) != weights:
        files.write_bytes(run / MODEL, weights)
    return progress


def _progress(path: Path) -> dict[str, Any]:
    """The progress in the current version, without its head."""
    with safetensors.safe_open(path, "numpy") as file:
        text = (file.metadata() or {}).get("progress", "")
    try:
        fields = dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError("GT3077", "not a checkpoint: it has no progress of a training run",
                         where=str(path)) from error
    checked(CHECKPOINT, fields, str(path))
    return {k: v for k, v in fields.items() if k not in CHECKPOINT.head}


def start(model: TrainModel, arrays: Mapping[str, Array], where: str) -> None:
    """Set the state from a model's weights. Other names are ignored; a count of batches may be
    missing.

    Raises InputError GT3076 if an array is missing, does not fit, or differs from an array that it
    is tied to, or from an array that the build has fixed.
    """
    given: dict[str, Array] = {}
    for name, parts in model.row.model.items():
        counts = name.endswith(COUNTER)
        if name not in arrays:
            if not counts and not model.fixed.keys() >= set(parts):
                raise InputError("GT3076", f"there is no array {name!r}, which the training needs",
                                 where=where)
            continue
        xs = split(name, arrays[name], len(parts), "GT3076", where)
        for part, x in zip(parts, xs, strict=True):
            tensor = model.state.get(part, model.fixed.get(part))
            assert tensor is not None
            fit = fitted(x, tensor.shape, of_numpy(tensor.dtype))
            if isinstance(fit, str):
                raise InputError("GT3076", f"{name} {fit}", where=where)
            fixed = part in model.fixed
            if not np.array_equal(given.setdefault(part, tensor if fixed else fit), fit) and not (
                    fixed and counts):
                raise InputError("GT3076", f"{name} has other numbers than "
                                 + ("this build, in which it is fixed" if fixed else
                                    "an array that it is tied to"), where=where)
    for part, x in given.items():
        if part in model.state:
            model.state[part][...] = x


def read(path: Path) -> dict[str, Array]:
    """The arrays of a safetensors file. Raises InputError GT0332 or GT3077."""
    data = files.read_bytes(path)
    try:
        return dict(safetensors.numpy.load(data))
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise InputError("GT3077", f"not a safetensors file, or incomplete: {error}",
                         where=str(path)) from error


def cut_log(path: Path, step: int, epoch: int) -> None:
    """Remove the log rows after the last checkpoint: the resumed run writes them again."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text("utf-8").splitlines():
        row = re.fullmatch(r"\{.*\}", line) and json.loads(line)
        if row and (row["step"] < step if "step" in row else row["epoch"] < epoch):
            kept.append(line + "\n")
    files.write_bytes(path, "".join(kept).encode())
