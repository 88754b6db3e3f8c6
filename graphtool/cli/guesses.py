"""Help for a command line that cannot be read: what other tools call a verb or an option, what a
missing option is for, a line that works, and what the file is that an error names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphtool.errors import GraphtoolError, listed, near

WORDS = {  # words of other tools, and the verb that does it here
    "compile": "build", "make": "build", "codegen": "emit",
    "convert": "import", "load": "import", "capture": "import", "trace": "import",
    "optimize": "opt", "optimise": "opt", "transform": "opt",
    "quantize": "quantise", "ptq": "quantise", "int8": "quantise",
    "differentiate": "grad", "backward": "grad", "autograd": "grad",
    "execute": "run", "exec": "run", "infer": "run", "inference": "run", "predict": "run",
    "evaluate": "eval", "interpret": "eval", "simulate": "eval",
    "compare": "check", "verify": "check", "validate": "check", "test": "check",
    "benchmark": "bench", "time": "bench", "perf": "profile",
    "print": "show", "inspect": "show", "dump": "show", "info": "show", "cat": "show",
    "summary": "show", "stats": "show", "list": "help", "ls": "help",
    "visualize": "view", "visualise": "view", "open": "view", "netron": "view", "ui": "view",
    "plot": "draw", "render": "draw", "graphviz": "draw", "fit": "train", "finetune": "train",
    "ship": "package", "deploy": "package", "pack": "package", "install": "package",
    "history": "why", "minimize": "reduce", "bisect": "opt", "autotune": "tune",
    "memory": "size", "ram": "size", "flash": "size", "prune": "cache", "clean": "cache",
    "tokenize": "tokenizer", "write": "generate", "chat": "generate", "env": "doctor",
    "onnxsim": "simplify", "merge": "git", "review": "git"}
OPTIONS = {  # words of other tools, and what does it here
    "--output": "-o, --out", "--output-dir": "-o, --out", "--outdir": "-o, --out",
    "--batch": "--dim batch=2 sets an open dim, --dynamic batch opens one at the import",
    "--batch-size": "--dim batch=2 sets an open dim, --dynamic batch opens one at the import",
    "--shape": "--inputs x:f32[1,3,224,224] is the type of an input of a torch model; "
               "--dim NAME=SIZE sets an open dim",
    "--input-shape": "--inputs x:f32[1,3,224,224] is the type of an input of a torch model; "
                     "--dim NAME=SIZE sets an open dim",
    "--bits": "--form int8, int4 or int2, of `graphtool quantise`",
    "--int8": "`graphtool quantise` makes weights and activations smaller",
    "--fp16": "`graphtool quantise --form float16`; `graphtool opt --passes amp{dtype=float16}`",
    "--bf16": "`graphtool quantise --form bfloat16`; --precision fast",
    "--quantize": "`graphtool quantise` makes weights and activations smaller",
    "--gpu": "--march cuda, or one of its row such as sm_90",
    "--cuda": "--march cuda, or one of its row such as sm_90",
    "--opencl": "--march opencl",
    "--device": "--march NAME: native, x86-64-v3, armv8-a, cuda, …",
    "--arch": "--march NAME: native, x86-64-v3, armv8-a, cuda, …",
    "--cpu": "--march native, or a row of the table of targets such as x86-64-v3",
    "--language": "`graphtool package BUILD --as cargo`, go, npm, wheel, cmake or deb",
    "--rust": "`graphtool package BUILD --as cargo`", "--go": "`graphtool package BUILD --as go`",
    "--python": "`graphtool package BUILD --as wheel`",
    "-O": "build and opt run the default passes; --passes names others",
    "--optimize": "build and opt run the default passes; --passes names others",
    "--shared": "a shared library is made by default; --static makes a static one",
    "--max-tokens": "--tokens N", "--weights-file": "--from FILE, of `graphtool weights`",
    "--learning-rate": "--lr X", "--steps": "--epochs N", "--csv": "--json, for programs",
    "--tolerance": "--atol X and --rtol X", "--tol": "--atol X and --rtol X",
    "--iterations": "--runs N of profile, --seconds X of bench"}
_FILE = "`graphtool show {0}` prints it, `graphtool view {0}` opens it in the browser,\n" \
        "`graphtool build {0} -o build` compiles it"


def unknown_verb(word: str) -> str:
    """The hint for a word that is no verb; "" where nothing is known of it."""
    if Path(word).exists() or word.endswith((".onnx", ".pt2", ".pt", ".mlir", ".json", ".gt")):
        return f"{word} is a file, and a verb comes first:\n" + _FILE.format(word)
    verb = WORDS.get(word.lower())
    return f"`graphtool {verb}` does that: graphtool help {verb}" if verb else ""


def unknown_option(name: str) -> str:
    """The hint for an option that a verb does not have; "" where nothing is known of it."""
    return OPTIONS.get(name.lower() if name.startswith("--") else name, "")


def missing(param: Any) -> str:
    """What an option or argument that is missing is for, as the help says it."""
    text = " ".join(str(getattr(param, "help", "") or "").split())
    if not text:
        return ""
    name = getattr(param, "metavar", None) or ""
    named = param.opts[0] if param.param_type_name == "option" else ""
    return f"{' '.join(filter(None, (named, name)))}: {text}"


_NO_JSON = "it is no JSON; a graph is a .graph.json or .gt file, a model .onnx, .pt2 or .mlir"
READING = ("GT0331", "GT0335", "GT0632", "GT3077", "GT3152")
"""Codes of errors about a file that is not what was expected."""


def about_file(error: GraphtoolError) -> None:
    """Say in the error what the file is that it names, or which one may be meant."""
    where = error.where.split("\n")[0] if error.where else ""
    said = ""
    if error.code == "GT0332":
        said = _meant(Path(where))
    elif error.code in READING:
        from graphtool.importers.kinds import BUILD, FOLDER, GRAPH, MISSING, OTHER, what
        kind = what(where)
        if kind not in (BUILD, FOLDER, GRAPH, MISSING):
            said = f"it is {kind.title}" if kind is not OTHER else _NO_JSON if (
                error.code == "GT0331") else ""
    if said:
        error.hint = "\n".join(filter(None, (said, error.hint)))


def _meant(path: Path) -> str:
    """A file with nearly the same name beside one that is not there, or files in a directory."""
    try:
        if path.is_dir():
            inside = sorted(str(p) for p in path.iterdir() if p.suffix in (
                ".npz", ".safetensors", ".json", ".onnx", ".gt"))
            return f"it is a directory, with {listed(inside)}" if inside else "it is a directory"
        names = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    except OSError:
        return ""
    found = near(path.name, names, "").removeprefix("did you mean ").partition("?")[0]
    return f"did you mean {path.parent / found.strip(chr(39))}?" if found else ""


def example(context: Any) -> str:
    """A command line of this verb that works, where one is known."""
    lines = str(getattr(getattr(context, "command", None), "epilog", "") or "").split("\n")
    return next((line.strip() for line in lines if line.strip().startswith("graphtool ")), "")
