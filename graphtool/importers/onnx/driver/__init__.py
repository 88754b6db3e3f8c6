"""Reads an ONNX model and runs its nodes through the handlers. Knows no operator itself."""
