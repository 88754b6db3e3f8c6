"""Shape functions for ATen operators that have none in torch but that a capture needs. They are
registered only during a capture, and apply to every torch program in this process meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


def _lstsq(a: Any, b: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    """(solution, residuals, ranks, singular values); all but the solution are empty."""
    vector = b.ndim == a.ndim - 1
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-1] if vector else b.shape[:-2])
    wide = () if vector else (b.shape[-1],)
    return (a.new_empty((*lead, a.shape[-1], *wide)), a.new_empty(0),
            a.new_empty(0, dtype=torch.int64), a.new_empty(0))


def _ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any,
              blank: int = 0, zero_infinity: bool = False) -> Any:
    """(a loss for each sequence, log α [n, time, 2·longest target + 1] for the gradient)."""
    n = log_probs.shape[1] if log_probs.ndim == 3 else 1
    return (log_probs.new_empty(n if log_probs.ndim == 3 else ()),
            log_probs.new_empty((n, log_probs.shape[0], 2 * targets.shape[-1] + 1)))


_FAKES: dict[str, Callable[..., Any]] = {
    "aten::linalg_lstsq": _lstsq, "aten::_ctc_loss": _ctc_loss,
    "aten::_ctc_loss.Tensor": _ctc_loss}


@contextmanager
def fakes() -> Iterator[None]:
    """Registers the shape functions within the `with` block, and removes them after it."""
    library = torch.library.Library("aten", "FRAGMENT")
    try:
        for name, fake in _FAKES.items():
            torch.library.register_fake(name, fake, lib=library, allow_override=True)
        yield
    finally:
        library._destroy()
