"""The wing: operators that few models have, beside the families that every model needs.

They serve onnxruntime's contrib operators (`com.microsoft`), classic machine learning
(`ai.onnx.ml`), strings and encoded images, and training steps (`ai.onnx.preview.training`).
Handlers are written as in `families`; no family imports the wing.
"""
