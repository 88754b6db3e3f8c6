"""The numbers that TorchScript has for element types, layouts and memory formats."""

from __future__ import annotations

from typing import Any

import torch

# as c10/core/ScalarType.h counts them
_KINDS: dict[int, torch.dtype] = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64,
    5: torch.float16, 6: torch.float32, 7: torch.float64, 9: torch.complex64,
    10: torch.complex128, 11: torch.bool, 15: torch.bfloat16}
_LAYOUTS = {0: torch.strided}
_FORMATS = {0: torch.contiguous_format, 1: torch.preserve_format, 2: torch.channels_last,
            3: torch.channels_last_3d}


def kind_of(number: Any) -> Any:
    """The element type that a number stands for; None for none."""
    return _KINDS.get(number) if isinstance(number, int) else number


def number_of(kind: torch.dtype) -> int:
    """The number of an element type; -1 where TorchScript's code would not know it either."""
    return next((n for n, k in _KINDS.items() if k == kind), -1)


def typed(x: Any, kind: str) -> Any:
    """The argument as Python's torch has it, where TorchScript has a number for it; `kind` is the
    type in the op's schema."""
    if isinstance(x, int) and not isinstance(x, bool):
        for word, table in (("ScalarType", _KINDS), ("Layout", _LAYOUTS),
                            ("MemoryFormat", _FORMATS)):
            if word in kind:
                return table.get(x)
    return x
