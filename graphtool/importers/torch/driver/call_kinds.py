"""ATen calls that the converter treats in a way of its own, by their names."""

from __future__ import annotations

# calls that check or annotate, and compute nothing
IGNORED = frozenset(f"aten.{name}" for name in (
    "_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
    "sym_constrain_range_for_size", "_functional_assert_async", "_functional_assert_scalar",
    "_linalg_check_errors"))
PROMISES = ("aten._assert_scalar", "aten._functional_assert_scalar")
SIZED = frozenset(f"aten.{name}" for name in (  # whose handlers define sizes
    "nonzero", "masked_select", "index", "_unsafe_index", "_unique2", "_unique",
    "unique_consecutive", "unique_dim", "repeat_interleave", "bincount"))
