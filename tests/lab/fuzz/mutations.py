"""Mutated artifacts: a seeded change of a JSON document, of a listing or of plain bytes.

`explore` reads many of them in child processes under limits of time and memory.
"""

from __future__ import annotations

import copy
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from graphtool.errors import GraphtoolError, InternalError

SECONDS, BYTES = 10, 3 << 30  # what reading one file may take
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 1 << 31, -(1 << 31), 1 << 40, 1 << 63, 1 << 64, 10**30,
    -(10**30), 0.5, -0.0, 1e308, -1e308, 1e-308, "", " ", "nan", "inf", "-inf", "0", "-1", "x", "é",
    "\0", "\ud800", "a" * 300, "f32[]", "f32[1,2]", "f32[N]", "f32[99999999999]", "i64[2]", "f32",
    "sha256:", "../x", "N*N", "N//0", "((((", "9" * 400, "base64:", "base64:AAAA", [], [[]], {},
    [None], {"": None}, {"value": None}, {"value": "nan"}, [1, [2]], [1 << 40], ["x"] * 40)
HUGE = ('"@NEST@"', "[" * 3000 + "]" * 3000)

Path_ = tuple[Any, ...]


def json_mutation(text: str, rng: random.Random, others: list[str] | None = None) -> str:
    """The document with one to three changes: of keys, of values, of types, of order."""
    document = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change(document, rng)
    said = json.dumps(document)
    if rng.random() < 0.02:
        said = said.replace(*HUGE, 1) if HUGE[0] in said else said.replace("[", HUGE[1] + "[", 1)
    if rng.random() < 0.03:  # a key twice
        at = said.find('"', rng.randrange(len(said)))
        said = said[:at] + '"id": 1, "id": 2, ' + said[at:]
    return said


def _places(x: Any, at: Path_ = ()) -> Iterator[Path_]:
    if isinstance(x, (dict, list)):
        for k in list(x) if isinstance(x, dict) else range(len(x)):
            yield (*at, k)
            yield from _places(x[k], (*at, k))


def _change(document: Any, rng: random.Random) -> None:
    places = list(_places(document))
    if not places:
        return
    *way, last = rng.choice(places)
    holder = document
    for k in way:
        holder = holder[k]
    value = holder[last]
    match rng.randrange(9):
        case 0:
            del holder[last]
        case 1 | 2 | 3:
            holder[last] = copy.deepcopy(rng.choice(ODD))
        case 4 if isinstance(holder, list):
            holder.insert(last, copy.deepcopy(rng.choice((value, rng.choice(ODD)))))
        case 5 if isinstance(holder, dict):
            key = rng.choice((*holder, "extra", "plan", "dtype"))
            holder[key] = copy.deepcopy(rng.choice((value, None, 3)))
        case 6:  # a value from elsewhere in the document
            source = document
            for k in rng.choice(places):
                source = source[k]
            holder[last] = copy.deepcopy(source)
        case 7:
            holder[last] = _near(value, rng)
        case _:
            holder[last] = [value] if rng.random() < 0.5 else {"value": value}


def _near(value: Any, rng: random.Random) -> Any:
    """A value that is almost right."""
    match value:
        case bool():
            return not value
        case int():
            return rng.choice((value + 1, value - 1, -value, value * 1000, str(value)))
        case float():
            return rng.choice((-value, value * 1e30, int(value), str(value)))
        case str() if value:
            at = rng.randrange(len(value))
            return rng.choice((value[:at], value[:at] + rng.choice("0129,[]+*-@#") + value[at + 1:],
                               value + rng.choice("01]x"), value[::-1]))
        case list():
            return rng.choice((value[:-1], value * 2, value[::-1]))
        case _:
            return rng.choice(ODD)


def byte_mutation(data: bytes, rng: random.Random) -> bytes:
    """The bytes with some flipped, cut off, doubled or replaced."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        # the head of a file says what is in it, so half of the changes are there
        at = rng.randrange(max(len(out), 1) if rng.random() < 0.5 else max(min(len(out), 400), 1))
        match rng.randrange(5):
            case 0:
                del out[at:at + rng.choice((1, 1, 4, len(out)))]
            case 1:
                out[at:at] = rng.randbytes(rng.choice((1, 2, 8)))
            case 2:
                out[at:at] = out[at:at + rng.choice((1, 8, 64))]
            case 3:
                out[at:at + 1] = rng.choice((b"9", b"0", b"-", b",", b"]", b"\xff", b"99999999999"))
            case _ if out:
                out[min(at, len(out) - 1)] ^= 1 << rng.randrange(8)
    return bytes(out)


def zip_mutation(data: bytes, rng: random.Random) -> bytes:
    """The archive with one member changed, dropped, renamed, doubled or compressed; sums are right.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(i.filename, archive.read(i)) for i in archive.infolist()]
    at = rng.randrange(len(members))
    named = [i for i, (name, _) in enumerate(members) if name.endswith((".json", ".py"))]
    if named and rng.random() < 0.6:  # what says how the others are read
        at = rng.choice(named)
    name, held = members[at]
    how = zipfile.ZIP_STORED
    match rng.randrange(10):
        case 0:
            del members[at]
        case 1:
            members[at] = (rng.choice((name + "x", "../" + name, "/etc/x", " ", "a/\0",
                                       name[::-1])), held)
        case 2:
            members.append((name, held[::-1]))
        case 3:
            members[at] = (name, rng.choice((b"", b"{}", b"[]", b"null", b"\x80\x02.", held[:-1])))
        case 4:
            how = zipfile.ZIP_DEFLATED
        case _ if name.endswith(".json"):
            members[at] = (name, json_mutation(held.decode(), rng).encode("utf-8",
                                                                        "surrogatepass"))
        case _ if name.endswith(".py"):
            members[at] = (name, text_mutation(held.decode(), rng).encode())
        case _:
            members[at] = (name, byte_mutation(held, rng))
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", how) as archive:
        warnings.simplefilter("ignore")  # about names that are there twice
        for name, held in members:
            archive.writestr(name, held)
    return out.getvalue()


def text_mutation(text: str, rng: random.Random) -> str:
    """The text with one to three of its words, numbers or lines changed, dropped or moved."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        lines = text.splitlines(keepends=True)
        words = list(re.finditer(r"[A-Za-z_]\w*|-?\d+(\.\d+)?|[^\s\w]", text))
        if not words:
            break
        word, other = rng.choice(words), rng.choice(words)[0]
        at = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                text = "".join(lines[:at] + lines[at + 1:])
            case 1:
                text = "".join(lines[:at] + lines[at:at + 1] * 2 + lines[at + 1:])
            case 2:
                text = text[:word.start()] + text[word.end():]
            case 3 if (number := next((w for w in rng.sample(words, len(words))
                                       if w[0].lstrip("-").isdigit()), None)) is not None:
                text = text[:number.start()] + rng.choice((
                    "0", "-1", "2", "7", "99999999999", "1" * 40, "?", "-0", "1e9", "0x1")) + (
                    text[number.end():])
            case 4:
                text = text[:word.start()] + other + text[word.end():]
            case _:
                text = text[:word.start()] + rng.choice((
                    "(" * 3000, "tensor<?xf32>", "tensor<1x99999999999xf32>", "%0", "é", '"', ">",
                    "tensor<*xf32>", "func.func", "None", "{", "//")) + text[word.end():]
    return text


def mutation(path: Path, rng: random.Random) -> bytes:
    """A changed text of the file at `path`."""
    data = path.read_bytes()
    if data[:2] == b"PK" and rng.random() < 0.8:
        return zip_mutation(data, rng)
    if path.suffix == ".mlir" and data[:2] != b"ML" and rng.random() < 0.8:
        return text_mutation(data.decode(), rng).encode()
    if path.suffix == ".json" and rng.random() < 0.9:
        return json_mutation(data.decode(), rng).encode("utf-8", "surrogatepass")
    if path.suffix == ".jsonl" and rng.random() < 0.8:
        lines = data.decode().splitlines()
        at = rng.randrange(len(lines))
        lines[at] = json_mutation(lines[at], rng)
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    return byte_mutation(data, rng)


def explore(read: Callable[[Path], object], samples: list[Path], count: int, seed: int = 0
            ) -> tuple[Counter[str], list[str]]:
    """Read `count` mutations: how many ended how, and what ended in no clear error.

    `read` is given a path in a folder that has the files beside the sample too.
    """
    found: Counter[str] = Counter()
    bad: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for p in {p for s in samples for p in s.parent.iterdir() if p.is_file()}:
            shutil.copy(p, folder)
        for number in range(seed, seed + count, 50):
            numbers = range(number, min(number + 50, seed + count))
            for line in _child(read, samples, folder, numbers):
                kind, _, rest = line.partition("\t")
                found[kind] += 1
                if kind == "fault":
                    bad.append(rest)
    return found, bad


def _child(read: Callable[[Path], object], samples: list[Path], folder: Path,
           numbers: range) -> Iterator[str]:
    """The outcome of each number, one on a line; read in a process of their own."""
    begin = numbers.start
    while begin < numbers.stop:
        log = folder / ".log"
        log.write_text("")
        child = os.fork()
        if child == 0:
            try:
                _limited()
                with log.open("w") as out:
                    for n in range(begin, numbers.stop):
                        print(_outcome(read, samples, folder, n), file=out, flush=True)
            finally:  # whatever is raised: the child must not go on with its parent's work
                os._exit(0)
        os.waitpid(child, 0)
        lines = log.read_text().splitlines()
        yield from lines
        begin += len(lines)
        if begin < numbers.stop:  # it died of this one
            yield f"fault\t{_sample(samples, begin).name} {begin}: the process ended"
            begin += 1


def _limited() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    signal.signal(signal.SIGALRM, _late)


def _late(*_: object) -> None:
    raise TimeoutError("too slow")


def _sample(samples: list[Path], number: int) -> Path:
    return samples[number % len(samples)]


def write_mutation(samples: list[Path], folder: Path, number: int) -> Path:
    """The mutated file of this number."""
    sample = _sample(samples, number)
    path = folder / sample.name
    path.write_bytes(mutation(sample, random.Random(number)))
    return path


def _outcome(read: Callable[[Path], object], samples: list[Path], folder: Path, number: int) -> str:
    path = write_mutation(samples, folder, number)
    signal.alarm(SECONDS)
    try:
        read(path)
        return "accepted"
    except InternalError as error:
        return f"fault\t{path.name} {number}: {error.code} {error.message}"
    except GraphtoolError as error:
        return f"refused\t{error.code}"
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        place = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))
        said = str(error).replace("\n", " ")[:100]
        return f"fault\t{path.name} {number}: {type(error).__name__} {said} at {place}"
    finally:
        signal.alarm(0)
        shutil.copy(_sample(samples, number), path)
