"""Weights under their names as safetensors, for other tools (`weights.py` names by content)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import BinaryIO

import numpy as np

from graphtool.io.weights import Weight


def save_named(named: Mapping[str, Weight], file: BinaryIO) -> None:
    """Write the weights, each of a type that safetensors has; wide types come first, so that all
    are aligned. Source: the format's description, github.com/huggingface/safetensors."""
    order = sorted(named, key=lambda n: (-named[n].dtype.bytes, n))
    header, end = {}, 0
    for name in order:
        w = named[name]
        header[name] = {"dtype": w.dtype.safetensors, "shape": list(w.shape),
                        "data_offsets": [end, end + w.nbytes]}
        end += w.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for name in order:
        data = named[name].stored
        file.write(data.reshape(-1).view(np.uint8).data if data.size else b"")
