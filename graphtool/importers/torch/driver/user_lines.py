"""Finds the line of the user's model that caused an exception during a capture."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from graphtool.errors import UnsupportedError
from graphtool.importers.torch.driver.provenance import short_file

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


def user_line(error: BaseException, torch_dir: str) -> tuple[str, str]:
    """(`file.py:12 forward`, source text) of the innermost frame that is not torch's."""
    found = ("", "")
    for link in _chain(error):
        for frame in traceback.extract_tb(link.__traceback__):
            path = frame.filename.replace("\\", "/")
            ours = "/graphtool/importers/" in path
            if path.startswith(torch_dir) or path.startswith("<") or ours:
                continue
            found = f"{short_file(path)}:{frame.lineno} {frame.name}", frame.line or ""
        if found[0]:
            break
    return found


def _chain(error: BaseException | None) -> list[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links


def failure(error: BaseException, how: str, torch_dir: str) -> UnsupportedError:
    """The coded error of a failed capture: the line, the kind of fault, and advice."""
    texts = [_COLOUR.sub("", f"{type(e).__name__}: {e}") for e in _chain(error)]
    joined = "\n".join(texts)
    kind, hint = next(((k, h) for word, k, h in _ADVICE if word in joined), ("", ""))
    first = next((line.strip() for line in texts[0].splitlines() if line.strip()), "")
    line, text = user_line(error, torch_dir)
    message = f"{how} cannot capture the model"
    message += f": {kind} ({first[:300]})" if kind else f": {first[:400]}"
    if how == "torch.fx" and "export" not in hint:
        hint = "use --capture export, which sees shapes and values"
    return UnsupportedError("GT1102", message, where=f"{line}\n{text}".strip(), hint=hint)


def root_of(package_file: str | None) -> str:
    """The directory of an installed package, with forward slashes and one at the end."""
    return Path(package_file or "").parent.as_posix() + "/"
