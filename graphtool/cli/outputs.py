"""Looks at what `-o` names before the work begins: whether its ending is one of another format, and
whether it can be written there.

An import or a build may take minutes; a name that cannot be meant so is said at once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from graphtool.compile.source import STABLEHLO
from graphtool.errors import InputError, UsageError

EXPORT = "`graphtool export GRAPH -o {out}` writes it from a graph"
FOREIGN = {  # endings that no graph, program or array has, by what writes such a file
    (".onnx", *STABLEHLO): EXPORT,
    (".npz", ".npy", ".csv"): "`graphtool eval` and `graphtool run` write their outputs as .npz",
    (".svg", ".dot", ".mmd"): "`graphtool draw IN -o {out}` draws a graph",
    (".png", ".jpg", ".pdf"): "`graphtool draw IN -o x.svg` draws a graph",
    (".html",): "`graphtool view IN -o {out}` writes a page",
    (".so", ".a", ".o", ".dll", ".dylib", ".exe"): "`graphtool build IN -o build` compiles it",
    (".c", ".cpp", ".h"): "`graphtool emit IN -o c` writes C",
    (".safetensors",): "weights are written beside their graph, in a file with this ending",
    (".pt", ".pth", ".pt2", ".tflite", ".h5", ".keras", ".pb", ".mlmodel", ".engine"):
        "no verb writes this; `graphtool export` writes ONNX and StableHLO"}
GRAPHS = ("import", "opt", "quantise", "grad", "jvp", "vmap", "weights", "reduce")
WRITES = {  # what verbs write, an ending for it, and the foreign endings that it has itself
    **dict.fromkeys(GRAPHS, ("a graph", ".graph.json", ())),
    "lower": ("a program", ".program.json", ()),
    **dict.fromkeys(("eval", "run"), ("the outputs", ".npz", (".npz",))),
    "view": ("a page", ".html", (".html",)),
    "export": ("ONNX or StableHLO", ".onnx", (".onnx", *STABLEHLO)),
    "schema": ("a schema", ".schema.json", ()),
    "tokenizer train": ("a tokenizer", ".json", ()),
    "machine": ("a row of the table of machines", ".json", ()),
    "tune": ("a tuning file", ".tuning", ())}
FOLDERS = {"build": "the library is DIR/libNAME.so", "emit": "the C is in it",
           "repro": "it has the C, the inputs and a Makefile", "report": "the page is in it",
           "demo": "it has the files of every stage", "package": "the package is in it"}
LATER = ("draw", "export")  # they call `reachable` when they have looked at their other options
IN_FOLDER = (*(end for ends in FOREIGN for end in ends), ".whl", ".deb", ".tgz", ".gz", ".rs")


def check(verb: str, out: Path) -> None:
    """Check what `-o` of a verb names. Raises UsageError GT3172 where its ending is of another
    format, and InputError GT0330 where its directory does not exist."""
    if str(out) == "-" or str(out).startswith(("/dev/", "/proc/")):
        return
    if verb in FOLDERS:
        _folder(verb, out)
        return
    if verb in WRITES:
        what, ending, own = WRITES[verb]
        use = next((use for ends, use in FOREIGN.items() if out.suffix.lower() in ends), "")
        if use and out.suffix.lower() not in own:
            raise UsageError("GT3172", f"{verb} writes {what}, and {out} has the ending of another "
                             "format", hint=f"-o {out.with_suffix(ending)}\n" + use.format(out=out))
    if verb not in LATER:
        reachable(out)


def reachable(out: Path | None) -> None:
    """Raises InputError GT0330 where the directory of an output does not exist."""
    if out is not None and not out.parent.exists():
        remedy = "md" if sys.platform == "win32" else "mkdir -p"
        raise InputError("GT0330", "cannot write: there is no such directory",
                         where=str(out.parent), hint=f"{remedy} {out.parent}")


def _folder(verb: str, out: Path) -> None:
    if out.suffix.lower() in IN_FOLDER and not out.is_dir():
        raise UsageError("GT3172", f"-o of {verb} names a directory, and {out} has the ending of a "
                         "file", hint=f"-o {out.with_suffix('')}; {FOLDERS[verb]}")
    if out.is_file():
        raise InputError("GT2112", "the output is to be a directory, and a file of this name "
                         "exists", where=str(out.absolute()), hint="name another, or remove it")
