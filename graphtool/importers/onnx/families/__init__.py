"""The handlers of the ONNX operators, one file for each family. Importing a file registers them."""
