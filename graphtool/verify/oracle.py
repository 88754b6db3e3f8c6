"""The process in which onnxruntime runs a model: `python -m graphtool.verify.oracle MODEL BYTES`.

It reads requests from stdin and answers on stdout. Each message is its length in 8 bytes, then a
letter and a body: `N` the names of the inputs and outputs, `A` arrays as an .npz, `E` an error.
`verify.apart` is the other end. Memory is limited where the system can, so that a model can end
this process only.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from graphtool.dtypes import as_strings, string
from graphtool.io import host, npz

Array = np.ndarray[Any, Any]
_OWN = 2 << 30  # what the runtime takes for itself


def write_message(out: BinaryIO, kind: bytes, body: bytes) -> None:
    """Write one message."""
    out.write(len(body).to_bytes(8, "little") + kind + body)
    out.flush()


def read_message(source: BinaryIO) -> tuple[bytes, bytes] | None:
    """The kind and body of the next message; None at the end or if it is cut short."""
    head = source.read(9)
    if len(head) < 9:
        return None
    size = int.from_bytes(head[:8], "little")
    body = source.read(size)
    return (head[8:], body) if len(body) == size else None


def main(path: str, most: int) -> None:
    """Serve a model until stdin ends."""
    host.limit_memory(most + _OWN)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the runtime prints is no answer
    try:
        from graphtool.verify.session import onnx_session
        session = onnx_session(Path(path))
        names = [[i.name for i in session.get_inputs()], [o.name for o in session.get_outputs()]]
        write_message(out, b"N", json.dumps(names).encode())
        while (message := read_message(sys.stdin.buffer)) is not None:
            given = npz.loads(message[1], "request")
            outputs = session.run(names[1], {n: _objects(given[n]) for n in names[0] if n in given})
            arrays = {str(i): _array(x) for i, x in enumerate(outputs)}
            write_message(out, b"A", npz.dumps(arrays))
    except Exception as error:  # onnxruntime has no common base for its faults
        text = getattr(error, "message", "") or str(error).strip() or type(error).__name__
        write_message(out, b"E", text.splitlines()[0][:300].encode())


def _array(value: Any) -> Array:
    """An output as an array; ZipMap's maps as the rows of their values."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return np.asarray([list(row.values()) for row in value], np.float32)
    array = np.asarray(value)
    return as_strings(array) if array.dtype == object else array


def _objects(x: Array) -> Array:
    """Strings as object arrays, as onnxruntime expects them."""
    return x.astype(object) if x.dtype == string.numpy else x


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
