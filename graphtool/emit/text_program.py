"""The program of `--exe` for the entry points of a language model: it writes text. It
feeds the entry points by the roles of their ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphtool.dtypes import bool_, float32, int64
from graphtool.emit.example import zeros
from graphtool.emit.interface import MacroPrinter
from graphtool.emit.lines import Writer
from graphtool.errors import InputError
from graphtool.escaping import c_string
from graphtool.loops.program import Port, Program, binds
from graphtool.symbolic import Dim, bounds, known, product

PART = 128  # tokens of a prompt that are taken at a time, where their number is open


@dataclass(frozen=True, slots=True)
class Roles:
    """Which port of an entry point is what, by number; -1: there is none.

    `tokens` i64[B, S], `position` i64[] (how many tokens came before), `places` i64[B, S] (the
    places of the tokens), `mask` [B, room] (ones, and zeros where a text has not begun), `logits`
    f32[B, …, V]. A run takes `least` to `most` tokens; with `last` it gives scores for each of
    them, not only for the last one. `texts` is B; several need places and a mask.
    """

    tokens: int
    position: int
    places: int
    mask: int
    logits: int
    size: int
    room: int
    least: int
    most: int
    last: bool
    texts: int = 1


def roles(p: Program) -> Roles:
    """The roles of a step's ports. Raises InputError GT3154 for a program that is no step of a
    language model with a cache."""
    state = {i for _, i in p.donations}
    free = [i for i in range(len(p.inputs)) if i not in state]
    slots = {b.name: b.slot for b in p.buffers if b.space == "input"}
    counted = [b for b in binds(p.steps) if b.buffer in slots]
    scalars = [slots[b.buffer] for b in counted]
    if not p.donations or len(scalars) != 1:
        raise _unfit(p, "it has no cache with a position", "the pass cache{max=1024} makes one")
    rows = [i for i in free if p.inputs[i].dtype is int64 and len(p.inputs[i].shape) == 2]
    masks = [i for i in free if "mask" in p.inputs[i].name]
    places = [i for i in rows if "position" in p.inputs[i].name and i not in masks]
    tokens = [i for i in rows if i not in (*masks, *places)]
    others = [i for i in free if i not in (*scalars, *masks, *places, *tokens)]
    given = [o for o in range(len(p.outputs)) if o not in {o for o, _ in p.donations}]
    if len(tokens) != 1 or others or max(len(masks), len(places)) > 1:
        raise _unfit(p, f"its inputs are {', '.join(x.name for x in p.inputs)}", "beside caches "
                     "and position, i64[1,S] of tokens, and perhaps positions and a mask")
    if len(given) != 1 or p.outputs[given[0]].dtype is not float32:
        raise _unfit(p, f"it gives {len(given)} results beside its caches", "one: f32[1,S,V]")
    batch, count = p.inputs[tokens[0]].shape
    logits = p.outputs[given[0]].shape
    size, room = logits[-1] if logits else 0, counted[0].most + count
    low, high = bounds(count)
    if not (isinstance(batch, int) and isinstance(size, int) and isinstance(room, int)) or any(
            p.inputs[i].dtype not in (int64, bool_) or p.inputs[i].shape != (batch, room)
            for i in masks):
        raise _unfit(p, "its batch or its room is open", "a batch of a known size, equal caches")
    if batch != 1 and not (masks and places):
        raise _unfit(p, f"it takes {batch} texts at once, without a mask and positions",
                     "a batch of 1; or inputs attention_mask[B,P+S] and position_ids[B,S]")
    most = min(x for x in (high, room, PART if high != low else high) if x is not None)
    return Roles(tokens[0], scalars[0], places[0] if places else -1, masks[0] if masks else -1,
                 given[0], size, room, max(low or 1, 1), most,
                 known(product(logits[:-1]), "==", batch * count) is True, batch)


def _unfit(p: Program, why: str, hint: str) -> InputError:
    return InputError("GT3154", f"{p.name} is no step of a language model: {why}", hint=hint)


def writer_program(name: str, programs: Sequence[Program], all_roles: Mapping[str, Roles],
                   merges: Sequence[tuple[int, int]], weights_file: str) -> str:
    """C with a `main` that writes text. The first program reads the prompt, the last one writes."""
    w = Writer()
    w.line(f"/* Writes text with {name}. In this folder:")
    w.line(f"       cc -O2 *.c -lm -o {name} && ./{name} \"Once upon a time\" --tokens 64 */")
    w.line(f'#include "{name}.h"')
    w.line('#include "language.h"')
    w.line()
    rows = [", ".join(f"{{{a}, {b}}}" for a, b in merges[i:i + 8])
            for i in range(0, len(merges), 8)] or ["{0, 0}"]
    with w.block(f"static const int32_t pairs[{max(len(merges), 1)}][2] = {{", "};"):
        for row in rows:
            w.line(f"{row},")
    w.line()
    caches = [(i, programs[0].inputs[i]) for _, i in programs[0].donations]
    w.line("/* what the entry points share; the caches hold all that was read so far */")
    w.line(f"static {name}_weights weights;")
    w.line("static void *arena;")
    w.line(f"static void *caches[{len(caches)}];")
    w.line("static float *scores;")
    masked = [(p, r) for p in programs if (r := all_roles[p.name]).mask >= 0]
    if masked:
        p, r = masked[0]
        w.line(f"static {p.inputs[r.mask].dtype.c} mask[{r.room}];")
    w.line()
    for p in programs:
        _entry(w, p, all_roles[p.name])
    first, last = programs[0], programs[-1]
    with w.block("static const float *run(const int64_t *tokens, int64_t count, int64_t at)\n{"):
        _choice(w, first, last, all_roles)
    w.line()
    zeros(w)
    w.line()
    with w.block("int main(int argc, char **argv)\n{"):
        _main(w, name, programs, all_roles, len(merges), weights_file, bool(masked))
    return w.text()


def _entry(w: Writer, p: Program, r: Roles) -> None:
    """Write the function that runs an entry point on `count` tokens."""
    with w.block(f"static const float *{p.name}(const int64_t *tokens, int64_t count, int64_t at)"
                 "\n{"):
        dims = ["count"] * len(p.dims) + ["0"] * max(len(p.sizes), 0 if p.dims else 1)
        w.line(f"{'' if p.sizes else 'const '}int64_t dims[] = {{{', '.join(dims)}}};")
        if r.places >= 0:
            w.line(f"int64_t places[{r.most}];")
            w.line("for (int64_t i = 0; i < count; i++) places[i] = at + i;")
        state = {i: n for n, (_, i) in enumerate(p.donations)}
        pointers = {r.tokens: "tokens", r.position: "&at", r.places: "places", r.mask: "mask"}
        ins = [f"caches[{state[i]}]" if i in state else pointers[i] for i in range(len(p.inputs))]
        back = {o: n for n, (o, _) in enumerate(p.donations)}
        outs = [f"caches[{back[o]}]" if o in back else "scores" for o in range(len(p.outputs))]
        w.line(f"const void *const inputs[] = {{{', '.join(ins)}}};")
        w.line(f"void *const outputs[] = {{{', '.join(outs)}}};")
        w.line(f"const int status = {p.name}_run(weights.data, arena, dims, inputs, outputs, 0);")
        with w.block("if (status) {"):
            w.line(f'fprintf(stderr, "{p.name}: %s\\n", {p.name}_status_text(status));')
            w.line("return NULL;")
        if not r.last:
            w.line("(void)count;")
        w.line(f"return scores + (count - 1) * {r.size};" if r.last else "return scores;")
    w.line()


def _choice(w: Writer, first: Program, last: Program, all_roles: Mapping[str, Roles]) -> None:
    """Write which entry point runs: the last one for what it can take, else the first one."""
    if first is last:
        w.line(f"return {first.name}(tokens, count, at);")
        return
    r = all_roles[last.name]
    w.line(f"return count <= {r.most} ? {last.name}(tokens, count, at)")
    w.line(f"                  : {first.name}(tokens, count, at);")


def _main(w: Writer, name: str, programs: Sequence[Program], all_roles: Mapping[str, Roles],
          merges: int, weights_file: str, masked: bool) -> None:
    r = all_roles[programs[0].name]
    file = c_string(weights_file) if weights_file else "NULL"
    w.line(f"language_options options = {{0.8, 1.0, 0, 64, 0, \"\", NULL, {file}}};")
    with w.block("if (!language_read(argc, argv, &options)) {"):
        w.line("fprintf(stderr, language_usage, argv[0]);")
        w.line("return 2;")
    w.line(f"const int status = {name}_load(&weights, options.file);")
    with w.block("if (status) {"):
        w.line(f'fprintf(stderr, "%s: %s\\n", options.file, {name}_status_text(status));'
               if weights_file else
               f'fprintf(stderr, "{name}: %s\\n", {name}_status_text(status));')
        w.line("return 1;")
    w.line("size_t bytes = 0;")
    for p in programs:
        most = ", ".join(str(all_roles[p.name].most) for _ in p.dims) or "0"
        with w.block("{"):
            w.line(f"const int64_t dims[] = {{{most}}}; /* the most tokens */")
            w.line(f"const size_t need = {p.name}_arena_bytes(dims);")
            w.line("if (need > bytes) bytes = need;")
    w.line("arena = zeros(bytes);")
    rows = max(all_roles[p.name].most if all_roles[p.name].last else 1 for p in programs)
    w.line(f"scores = (float *)zeros((size_t){rows} * {r.size} * sizeof *scores);")
    for n, (_, i) in enumerate(programs[0].donations):
        w.line(f"caches[{n}] = zeros({_bytes_of_size(programs[0], programs[0].inputs[i])});")
    if masked:
        w.line("for (size_t i = 0; i < sizeof mask / sizeof *mask; i++) mask[i] = 1;")
    w.line(f"const language_model model = {{{merges}, pairs, {r.most}, {r.room}, run}};")
    held = " && ".join(["arena", "scores", *(f"caches[{n}]" for n in range(
        len(programs[0].donations)))])
    w.line(f"const int code = {held} ? language_main(&model, &options) : 1;")
    w.line(f"for (int i = 0; i < {len(programs[0].donations)}; i++) free(caches[i]);")
    w.line("free(scores);")
    w.line("free(arena);")
    w.line(f"{name}_free(&weights);")
    w.line("return code;")


def _bytes_of_size(program: Program, port: Port) -> str:
    """The bytes of a cache, whose sizes are numbers."""
    count: Dim = product(port.shape) * port.dtype.bytes
    return str(count) if isinstance(count, int) else MacroPrinter(program).index(count)
