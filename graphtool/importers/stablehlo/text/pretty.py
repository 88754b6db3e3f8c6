"""The short forms of operations, as rows: what their words and keys are called in the generic form.

A short form is a sequence of operands, `key = attribute`, words, lists and a dictionary. What has
another shape (`while`, `reduce`, `slice`) is read by a function in `operations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphtool.importers.stablehlo.text.attributes import Fields

# operation → (key of the short form → name of the generic form; a pair for `[0] x [1]`)
KEYS: dict[str, dict[str, str | tuple[str, str]]] = {
    "stablehlo.broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.transpose": {"dims": "permutation"},
    "stablehlo.reverse": {"dims": "dimensions"},
    "stablehlo.concatenate": {"dim": "dimension"},
    "stablehlo.get_dimension_size": {"dim": "dimension"},
    "stablehlo.set_dimension_size": {"dim": "dimension"},
    "stablehlo.iota": {"dim": "iota_dimension"},
    "stablehlo.dynamic_iota": {"dim": "iota_dimension"},
    "stablehlo.dot_general": {
        "batching_dims": ("lhs_batching_dimensions", "rhs_batching_dimensions"),
        "contracting_dims": ("lhs_contracting_dimensions", "rhs_contracting_dimensions"),
        "precision": "precision_config"},
    "stablehlo.dot": {"precision": "precision_config"},
    "stablehlo.pad": {"low": "edge_padding_low", "high": "edge_padding_high",
                      "interior": "interior_padding"},
    "stablehlo.dynamic_slice": {"sizes": "slice_sizes"},
    "stablehlo.fft": {"type": "fft_type", "length": "fft_length"},
    "stablehlo.rng": {"distribution": "rng_distribution"},
    "stablehlo.rng_bit_generator": {"algorithm": "rng_algorithm"},
}
# operation → names of its words, in order
WORDS: dict[str, tuple[str, ...]] = {
    "stablehlo.compare": ("comparison_direction", "compare_type"),
    "chlo.compare": ("comparison_direction", "compare_type"),
}
# `value` → what the array, the function or the string of a form is called
VALUES = {
    "stablehlo.custom_call": "call_target_name", "stablehlo.composite": "name",
    "call": "callee", "func.call": "callee",
}


def named(name: str, keys: Mapping[str, Any], words: list[str], value: Any) -> dict[str, Any]:
    """The attributes of a short form under the names of the generic form."""
    out: dict[str, Any] = {}
    rename = KEYS.get(name, {})
    for key, x in keys.items():
        match rename.get(key, key):
            case (first, second):
                left, right = x if isinstance(x, tuple) and len(x) == 2 else (x, x)
                out[first], out[second] = left, right
            case str(full):
                out[full] = x
    out.update(zip(WORDS.get(name, ()), words, strict=False))
    if value is not None:
        out[VALUES.get(name, "value")] = value
    if name == "stablehlo.reduce_precision" and isinstance(x := out.pop("format", None), str):
        bits = x.lstrip("e").partition("m")
        if bits[0].isdigit() and bits[2].isdigit():
            out["exponent_bits"], out["mantissa_bits"] = int(bits[0]), int(bits[2])
    return out


def flat(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes in which the fields of `dimension_numbers` stand for themselves.

    Those of a convolution are a triple of lists, `dim_numbers`, in both forms.
    """
    out: dict[str, Any] = {}
    for key, x in attrs.items():
        if isinstance(x, Fields) and x.named and "dimension_numbers" in key:
            out.update(x.named)
        elif isinstance(x, Fields) and key == "dimension_numbers" and x.parts:
            out["dim_numbers"] = x.parts[0]
        else:
            out[key] = x
    return out
