"""Values that attributes of standard operators choose from; the schemas of `onnx` hold none.

A choice is exact: `SAME` and `same_upper` are not values of `auto_pad`. The sources are the
operators' descriptions in the ONNX specification (docs/Operators.md of onnx).
"""

from __future__ import annotations

from typing import Any

from graphtool.errors import InputError

_AUTO_PAD = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_DIRECTIONS = ("forward", "reverse", "bidirectional")
_REDUCTIONS = ("none", "mean", "sum")
_SCATTERS = ("none", "add", "mul", "max", "min")
_AFTER = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_FLAG = (0, 1)

CHOICES: dict[tuple[str, str], tuple[str | int, ...]] = {
    **{(op, "auto_pad"): _AUTO_PAD for op in (
        "Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv", "MaxPool",
        "AveragePool", "LpPool")},
    **{(op, "direction"): _DIRECTIONS for op in ("RNN", "GRU", "LSTM")},
    **{(op, "reduction"): _REDUCTIONS for op in (
        "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
    **{(op, "reduction"): _SCATTERS for op in ("ScatterND", "ScatterElements")},
    **{(op, "post_transform"): _AFTER for op in (
        "LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor",
        "TreeEnsembleClassifier", "TreeEnsembleRegressor")},
    **{(op, "aggregate_function"): ("AVERAGE", "SUM", "MIN", "MAX") for op in (
        "TreeEnsembleRegressor",)},
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("DepthToSpace", "mode"): ("DCR", "CRD"),
    ("Gelu", "approximate"): ("none", "tanh"),
    ("GridSample", "mode"): ("bilinear", "nearest", "bicubic", "linear", "cubic"),
    ("GridSample", "padding_mode"): ("zeros", "border", "reflection"),
    ("ImageDecoder", "pixel_format"): ("RGB", "BGR", "Grayscale"),
    ("MaxPool", "storage_order"): _FLAG,
    ("Normalizer", "norm"): ("MAX", "L1", "L2"),
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("Resize", "mode"): ("nearest", "linear", "cubic"),
    ("Resize", "coordinate_transformation_mode"): (
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_half_pixel_for_nn", "tf_crop_and_resize"),
    ("Resize", "nearest_mode"): (
        "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"),
    ("Resize", "keep_aspect_ratio_policy"): ("stretch", "not_larger", "not_smaller"),
    ("RoiAlign", "mode"): ("avg", "max"),
    ("RoiAlign", "coordinate_transformation_mode"): ("half_pixel", "output_half_pixel"),
    ("StringNormalizer", "case_change_action"): ("LOWER", "UPPER", "NONE"),
    ("TensorScatter", "mode"): ("linear", "circular"),
    ("TfIdfVectorizer", "mode"): ("TF", "IDF", "TFIDF"),
    ("Upsample", "mode"): ("nearest", "linear", "bilinear"),
}
_FLAGS = frozenset({"keepdims", "ceil_mode", "count_include_pad", "transA", "transB", "exclusive",
                    "reverse", "largest", "sorted", "select_last_index", "noop_with_empty_axes",
                    "fmod", "saturate", "is_causal"})


def check_choice(op: str, a: Any, where: str) -> None:
    """Check the value of an attribute that has few allowed ones. Raises InputError GT1018."""
    if a.ref_attr_name:
        return
    allowed = CHOICES.get((op, a.name), _FLAG if a.name in _FLAGS and a.type == a.INT else None)
    if allowed is None or a.type not in (a.INT, a.STRING):
        return
    value = a.i if a.type == a.INT else a.s.decode("utf-8", "replace")
    if value not in allowed:
        raise InputError("GT1018", f"{op}.{a.name} cannot be {value!r}", where=where,
                         hint=f"it can be {', '.join(map(str, allowed))}")
