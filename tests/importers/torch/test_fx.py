

def test_colours_for_a_terminal_stay_out_of_errors() -> None:
    from graphtool.importers.torch.lines import failure
    error = failure(RuntimeError("\x1b[96mstep\x1b[0m 3"), "torch.onnx", "/nowhere/")
    assert "RuntimeError: step 3" in error.message
