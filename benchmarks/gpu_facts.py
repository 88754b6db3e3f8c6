"""What the compiler made of the kernels of some cases, for each architecture: registers, shared
memory, what is kept on the stack, and how often the instructions occur that a kernel is about.

Numbers come from the code itself: an ELF file, which nvdisasm disassembles.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import jobs, work
from benchmarks.work import Row

ARCHITECTURES = (80, 87, 90, 120)
CASES = {"resnet50_b1.float32": "cuda", "resnet50_b1.bf16": "cuda",  # and their targets
         "mobilenet_v2_b1.float32": "cuda", "bert_b1.bf16": "cuda", "gpt2_decode.bf16": "cuda",
         "train_mlp_b64.float32": "cuda", "resnet50_b32.bf16": "sm_90", "bert_b16.bf16": "sm_90",
         "resnet50_b32.float32": "sm_90", "train_resnet18_b32.float32": "sm_90"}
# matrix unit of floats and of bytes, of four warps; copies into shared memory by threads and by the
# engine for them; squares from there; multiply-adds; accesses of the stack
COUNTED = ("HMMA", "IMMA", "HGMMA", "IGMMA", "LDGSTS", "UBLKCP", "LDSM", "FFMA", "STL", "LDL")
_SIZED, _REGISTERS, _STACK = 4, 0x2F, 0x11  # of records in .nv.info
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)")


def facts(redo: bool) -> int:
    """Compile and disassemble what is missing; returns how many cases failed."""
    if disassembler() is None:
        raise SystemExit("nvdisasm is neither in the path nor installed: "
                         "pip install nvidia-cuda-nvdisasm")
    kept, failed = {} if redo else stored(), 0
    for name in CASES:
        if "kernels" not in kept.get(name, {}):
            kept[name] = jobs.run("benchmarks.gpu_facts", "case", name)
            work.results("gpu_facts.json").write_text(json.dumps(kept, indent=1))
        failed += "error" in kept[name]
        print(f"{name}: " + kept[name].get("error", f"{len(kept[name].get('kernels', ()))} rows"),
              flush=True)
    return failed


def stored() -> dict[str, Row]:
    path = work.results("gpu_facts.json")
    return json.loads(path.read_text()) if path.exists() else {}


def disassembler() -> str | None:
    """nvdisasm of a toolkit, or of the package of PyPI."""
    if found := shutil.which("nvdisasm"):
        return found
    spec = find_spec("nvidia")
    places = list(spec.submodule_search_locations or ()) if spec else []
    paths = [p for place in places for p in sorted(Path(place).glob("*/bin/nvdisasm"))]
    return str(paths[0]) if paths else None


def case(name: str) -> Row:
    """The kernels of a case for each architecture, and the sizes of the code."""
    from benchmarks.gpu_prepare import optimised
    from graphtool.compile.as_is import build
    from graphtool.target import named
    target = CASES[name]
    module = optimised(name, target)
    with TemporaryDirectory() as temporary:
        built = build(module, Path(temporary) / "build", name="model", target=target)
        templates = of_kernels((built / "model_kernels0.cu").read_text())
        rows, sizes = [], {}
        for arch in named(target).devices:
            path = built / f"model_sm_{arch}.cubin"
            sizes[str(arch)] = path.stat().st_size
            rows += [{"arch": arch, "template": templates.get(row["kernel"], "loops"), **row}
                     for row in kernels(path)]
    return {"kernels": rows, "sizes": sizes}


def of_kernels(text: str) -> dict[str, str]:
    """The template of each kernel that has one: its header's name before `_cuda`."""
    out, current = {}, ""
    for line in text.splitlines():
        if line.startswith("#define GT_NAME "):
            current = line.split()[2].rpartition("_")[0]
        elif found := re.match(r'#include "(\w+)_cuda\.h"', line):
            out[current] = found[1]
    return out


def kernels(path: Path) -> Iterator[Row]:
    """The kernels in an image of code."""
    data = path.read_bytes()
    sections = {name: (start, size) for name, start, size in _sections(data)}
    registers, stack = _attributes(data, sections)
    counts = instructions(path)
    for name in sections:
        if name.startswith(".text."):
            kernel = name.removeprefix(".text.")
            yield {"kernel": kernel, "registers": registers[kernel], "stack": stack[kernel],
                   "shared": sections.get(f".nv.shared.{kernel}", (0, 0))[1],
                   **{k: n for k in COUNTED if (n := counts[kernel][k])}}


def _sections(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, start and size of the sections of an ELF file of 64 bits."""
    at, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(count)]
    for head in heads:
        yield _text(data, heads[names][4] + head[0]), head[4], head[5]


def _text(data: bytes, at: int) -> str:
    return data[at:data.index(b"\0", at)].decode()


def _attributes(data: bytes, sections: dict[str, tuple[int, int]]
                ) -> tuple[Counter[str], Counter[str]]:
    """Registers, and bytes of the stack, by the kernel: records of 4 bytes in `.nv.info`, most with
    a payload, which begins with the number of a symbol."""
    (symbols, _), (names, _) = sections[".symtab"], sections[".strtab"]
    at, size = sections[".nv.info"]
    end, found = at + size, {_REGISTERS: Counter[str](), _STACK: Counter[str]()}
    while at < end:
        form, attribute, length = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _SIZED:
            if attribute in found:
                symbol, value = struct.unpack_from("<II", data, at)
                name, = struct.unpack_from("<I", data, symbols + symbol * 24)
                found[attribute][_text(data, names + name)] = value
            at += length
    return found[_REGISTERS], found[_STACK]


def instructions(path: Path) -> dict[str, Counter[str]]:
    """How often each instruction occurs, by the kernel."""
    said = subprocess.run([disassembler() or "nvdisasm", "-c", str(path)], check=True, text=True,
                          capture_output=True).stdout
    out: dict[str, Counter[str]] = {}
    for line in said.splitlines():
        if line.lstrip().startswith(".section\t.text."):
            kernel = line.split(".text.")[1].split(",")[0].strip('"')
            out[kernel] = Counter()
        elif out and (found := _INSTRUCTION.match(line)):
            out[kernel][found[1]] += 1
    return out
