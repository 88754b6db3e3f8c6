"""The handlers of the ONNX operators, one file a family. Importing a file fills the table."""
