"""Finds the line of the user's model that caused an exception during a capture."""

from __future__ import annotations

import re

from graphtool.errors import UnsupportedError
from graphtool.importers.python_source import chain, user_line

# a word of the exception's text or type → what went wrong, what to do about it
_ADVICE = (
    ("TraceError", "control flow that depends on an input", "use --capture export"),
    ("data-dependent", "a branch or a size that depends on the data",
     "use torch.cond for a branch, torch.where for a choice of values, "
     "torch._check for a bound on a size"),
    ("GuardOnDataDependent", "a branch or a size that depends on the data",
     "use torch.cond for a branch, torch.where for a choice of values, "
     "torch._check for a bound on a size"),
    ("specialized", "a dynamic dim that the model fixes",
     "a loop over the dim, or a test of it, makes its size a constant; name fewer dims as "
     "dynamic, or write the loop as tensor operations"),
    ("Constraints violated", "a dynamic dim that the model restricts",
     "give the dim the bounds that the model allows, or leave it static"),
)

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # torch.onnx writes for terminals


def failure(error: BaseException, how: str, torch_dir: str) -> UnsupportedError:
    """The coded error of a failed capture: the line, the kind of fault, and advice."""
    texts = [_COLOUR.sub("", f"{type(e).__name__}: {e}") for e in chain(error)]
    joined = "\n".join(texts)
    kind, hint = next(((k, h) for word, k, h in _ADVICE if word in joined), ("", ""))
    first = next((line.strip() for line in texts[0].splitlines() if line.strip()), "")
    line, text = user_line(error, torch_dir)
    message = f"{how} cannot capture the model"
    message += f": {kind} ({first[:300]})" if kind else f": {first[:400]}"
    if how == "torch.fx" and "export" not in hint:
        hint = "use --capture export, which sees shapes and values"
    return UnsupportedError("GT1102", message, where=(line, text), hint=hint)
