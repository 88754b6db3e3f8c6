"""graphtool inside other tools: a backend of torch.compile, and one of the onnx package."""
