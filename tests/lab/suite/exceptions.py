"""The cases that do not pass, each pattern with its reason. A test keeps the list true."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch

EXCEPTIONS: dict[str, str] = {
    "test_attention_4d_causal_fp16_expanded": "2 of 192 numbers are one float16 beside the "
    "expectation, which rounds within the softmax; here it is computed in float32",
    "test_bernoulli*": "random numbers, drawn from another generator",
    "test_training_dropout_default*": "random numbers, drawn from another generator",
    "test_training_dropout_mask": "random numbers, drawn from another generator",
    "test_training_dropout": "random numbers, drawn from another generator",
    "test_dft_inverse*": "the expectation holds float32 noise of 2e-7 where the answer is 0",
}
_TEXT = "strings are evaluated only"
EXCEPTIONS_C: dict[str, str] = {
    "test_string_*": _TEXT,
    "test_strnormalizer_*": _TEXT,
    "test_regex_full_match_*": _TEXT,
    "test_equal_string*": _TEXT,
    "test_ai_onnx_ml_label_encoder_*": _TEXT,
    "test_strnorm_model_*": _TEXT,
    "test_image_decoder_*": "pictures are decoded by the evaluator only",
    **EXCEPTIONS,
}
# So many pass only once the inputs that say sizes are pinned to the case's own.
PINNED_EVAL = 9
PINNED_C = 23


def reason(name: str, exceptions: Mapping[str, str]) -> str | None:
    """Why the case does not pass, if the list says so."""
    return next((why for pattern, why in exceptions.items() if fnmatch(name, pattern)), None)


def faults(results: Mapping[str, tuple[str, str]],
           exceptions: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The cases that do not do what the list says."""
    return {n: r for n, r in results.items()
            if (r[0] in ("passed", "passed pinned")) is (reason(n, exceptions) is not None)}
