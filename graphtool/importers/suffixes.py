"""The endings of the files that torch writes: `.pt` and its kin say nothing of what is inside."""

SAVED = (".pt", ".pth", ".ts", ".torchscript")
