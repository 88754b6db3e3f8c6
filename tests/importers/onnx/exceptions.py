"""The node cases that do not pass, each pattern with its reason. A test keeps the list true."""

from __future__ import annotations

EXCEPTIONS: dict[str, str] = {
    "test_string_*": "strings are not numbers",
    "test_strnormalizer_*": "strings are not numbers",
    "test_regex_full_match_*": "strings are not numbers",
    "test_equal_string*": "strings are not numbers",
    "test_ai_onnx_ml_label_encoder_*": "the keys or values are strings",
    "test_image_decoder_*": "decoding images is not numerics",
    "test_nonmaxsuppression_*": "the size of the result depends on data",
    "test_nonzero_example": "the size of the result depends on data",
    "test_unique_*": "the size of the result depends on data",
    "test_bernoulli*": "random numbers, drawn from another generator",
    "test_training_dropout_default*": "random numbers, drawn from another generator",
    "test_training_dropout_mask": "random numbers, drawn from another generator",
    "test_training_dropout": "random numbers, drawn from another generator",
    "test_optional_has_element_empty_optional_input": "an absent value as a graph input",
    "test_sequence_map_add_1_sequence_1_tensor*":
        "adds sizes of which the model does not say that they agree",
    "test_dft_inverse*": "the expectation holds float32 noise of 2e-7 where the answer is 0",
    "test_attention_4d_causal_bf16*": "differs in the last bit of bfloat16",
    "test_attention_4d_padded_kv_bf16*": "differs in the last bit of bfloat16",
    "test_attention_4d_causal_padded_kv_bf16*": "differs in the last bit of bfloat16",
    "test_attention_3d_causal_bf16*": "differs in the last bit of bfloat16",
}
# What compiled code misses besides: halves are widened inside a kernel and rounded where they are
# stored, so that the results are nearer to the true ones than the expectation.
EXCEPTIONS_C: dict[str, str] = EXCEPTIONS | {
    "test_attention_4d_causal_fp16*": "differs in the last bit of float16",
    "test_attention_4d_attn_mask_causal_bf16*": "differs in the last bit of bfloat16",
}
# These pass, but only once the inputs that say sizes are pinned to the case's own.
PINNED = 313
