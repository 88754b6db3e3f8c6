"""graphtool as a backend of other tools: torch.compile, and the backend interface of onnx."""
