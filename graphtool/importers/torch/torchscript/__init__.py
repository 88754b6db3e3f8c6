"""TorchScript archives and scripted modules: their code is interpreted here, inside a capture."""
