"""A llama with random weights of 4 bits in blocks of 32, as ONNX for us and for onnxruntime, and as
GGUF for llama.cpp: the same bits in all of them.

16 layers, 1024 wide, 16 heads that share 8 key heads, 3072 in between, 16384 tokens: 0.23 billion
parameters, of which a step reads 121 MB.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LAYERS, WIDE, HEADS, KEYS, DEPTH, INNER, TOKENS = 16, 1024, 16, 8, 64, 3072, 16384
BLOCK, PLACES, EPSILON = 32, 2048, 1e-5
SIZES = {"q": (WIDE, WIDE), "k": (KEYS * DEPTH, WIDE), "v": (KEYS * DEPTH, WIDE),
         "o": (WIDE, WIDE), "gate": (INNER, WIDE), "up": (INNER, WIDE), "down": (WIDE, INNER)}


def weight(name: str, rows: int, columns: int) -> tuple[Array, Array]:
    """Integers 0 … 15 [rows, blocks, 32] and float16 scales [rows, blocks], by the name."""
    rng = np.random.default_rng(list(name.encode()))
    q = rng.integers(0, 16, (rows, columns // BLOCK, BLOCK), np.uint8)
    spread = 0.2 / np.sqrt(columns)
    return q, (spread * rng.uniform(0.7, 1.3, q.shape[:2])).astype(np.float16)


def table() -> Array:
    """The vectors of the tokens."""
    q, scales = weight("token_embd", TOKENS, WIDE)
    return ((q.astype(np.float32) - 8) * scales[:, :, None].astype(np.float32)).reshape(
        TOKENS, WIDE)


def angles() -> Array:
    steps = 10000.0 ** (-np.arange(0, DEPTH, 2) / DEPTH)
    return np.arange(PLACES)[:, None] * steps[None]


@dataclass
class Onnx:
    """The nodes of an ONNX graph as they are added."""

    nodes: list[Any] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)

    def __call__(self, op: str, *xs: str, out: str, domain: str = "", **attrs: Any) -> str:
        import onnx
        outs = [out, *attrs.pop("more", ())]
        self.nodes.append(onnx.helper.make_node(op, xs, outs, domain=domain, **attrs))
        return out

    def array(self, name: str, x: Array) -> str:
        import onnx
        self.arrays.append(onnx.numpy_helper.from_array(x, name))
        return name

    def product(self, x: str, name: str, rows: int, columns: int) -> str:
        q, scales = weight(name, rows, columns)
        packed = q[:, :, ::2] | q[:, :, 1::2] << 4
        return self("MatMulNBits", x, self.array(f"{name}.q", packed),
                    self.array(f"{name}.s", scales.astype(np.float32)), out=f"{name}.y",
                    domain="com.microsoft", K=columns, N=rows, bits=4, block_size=BLOCK,
                    accuracy_level=4)

    def norm(self, x: str, out: str) -> str:
        return self("RMSNormalization", x, "ones", out=out, axis=-1, epsilon=EPSILON)


def write_onnx(path: Path, steps: int, room: int = 0) -> None:
    """A prompt of `steps` tokens, or a step behind a past: of open length, or with `room` in a
    buffer, for onnxruntime's GroupQueryAttention."""
    g, past = Onnx(), room > 0 or steps == 1
    g.array("ones", np.ones(WIDE, np.float32))
    for name, f in (("cos", np.cos), ("sin", np.sin)):
        g.array(name, f(angles()).astype(np.float32))
    x = g("Gather", g.array("table", table()), "ids", out="x")
    ports: list[tuple[str, str]] = []
    for i in range(LAYERS):
        h = g.norm(x, f"{i}.h")
        q, k, v = (g.product(h, f"{i}.{name}", *SIZES[name]) for name in "qkv")
        kept = [f"{i}.past_k", f"{i}.past_v"], [f"{i}.k_now", f"{i}.v_now"]
        if past or room:
            ports += zip(*kept, strict=True)
        if room:
            y = g("GroupQueryAttention", q, k, v, *kept[0], "ends", "total", "cos", "sin",
                  out=f"{i}.a", more=kept[1], domain="com.microsoft", num_heads=HEADS,
                  kv_num_heads=KEYS, do_rotary=1)
        else:
            q, k = (g("RotaryEmbedding", z, "cos", "sin", "positions", out=f"{z}.r", num_heads=n)
                    for z, n in ((q, HEADS), (k, KEYS)))
            y = g("Attention", q, k, v, *(["", *kept[0]] if past else []), out=f"{i}.a",
                  more=kept[1], q_num_heads=HEADS, kv_num_heads=KEYS, is_causal=1)
            ports += [] if past else [("", name) for name in kept[1]]
        x = g("Add", x, g.product(y, f"{i}.o", *SIZES["o"]), out=f"{i}.x")
        h = g.norm(x, f"{i}.h2")
        gate, up = (g.product(h, f"{i}.{name}", *SIZES[name]) for name in ("gate", "up"))
        gate = g("Mul", gate, g("Sigmoid", gate, out=f"{i}.sig"), out=f"{i}.silu")
        inner = g("Mul", gate, up, out=f"{i}.inner")
        x = g("Add", x, g.product(inner, f"{i}.down", *SIZES["down"]), out=f"{i}.x2")
    last = x if steps == 1 else g("Gather", x, g.array("last", np.array([steps - 1])), out="x.last",
                                  axis=1)
    g.product(g.norm(last, "final"), "output", TOKENS, WIDE)
    _save(path, g, steps, room, ports)


def _save(path: Path, g: Onnx, steps: int, room: int, ports: list[tuple[str, str]]) -> None:
    import onnx
    from onnx import TensorProto as T

    def info(name: str, kind: int, *shape: Any) -> Any:
        return onnx.helper.make_tensor_value_info(name, kind, shape)
    now = room or ("N" if steps == 1 else steps)
    inputs = [info("ids", T.INT64, 1, steps)]
    inputs += [info("ends", T.INT32, 1), info("total", T.INT32)] if room else [
        info("positions", T.INT64, 1, steps)]
    inputs += [info(a, T.FLOAT, 1, KEYS, room or "P", DEPTH) for a, _ in ports if a]
    outputs = [info("output.y", T.FLOAT, 1, 1, TOKENS),
               *(info(b, T.FLOAT, 1, KEYS, now, DEPTH) for _, b in ports)]
    graph = onnx.helper.make_graph(g.nodes, "llama", inputs, outputs, g.arrays)
    opsets = [onnx.helper.make_opsetid("", 23), onnx.helper.make_opsetid("com.microsoft", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), path,
              save_as_external_data=True, location=f"{path.name}.data")


def write_gguf(path: Path) -> None:
    """The same weights; llama.cpp turns adjacent elements, so heads are reordered for it."""
    import gguf
    w = gguf.GGUFWriter(path, "llama")
    for name, value in (("block_count", LAYERS), ("context_length", PLACES),
                        ("embedding_length", WIDE), ("feed_forward_length", INNER),
                        ("head_count", HEADS), ("head_count_kv", KEYS),
                        ("rope_dimension_count", DEPTH), ("rope_freq_base", 10000.0),
                        ("layer_norm_rms_eps", EPSILON), ("vocab_size", TOKENS),
                        ("tokenizer_model", "none"),
                        ("file_type", gguf.LlamaFileType.MOSTLY_Q4_0)):
        getattr(w, f"add_{name}")(value)

    def product(name: str, own: str, rows: int, columns: int, heads: int = 0) -> None:
        q, scales = weight(own, rows, columns)
        if heads:
            order = np.arange(rows).reshape(heads, 2, DEPTH // 2).swapaxes(1, 2).reshape(-1)
            q, scales = q[order], scales[order]
        blocks = np.concatenate([scales[..., None].view(np.uint8),
                                 q[..., :16] | q[..., 16:] << 4], 2)
        w.add_tensor(name, blocks.reshape(rows, -1),
                     raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    ones = np.ones(WIDE, np.float32)
    product("token_embd.weight", "token_embd", TOKENS, WIDE)
    product("output.weight", "output", TOKENS, WIDE)
    w.add_tensor("output_norm.weight", ones)
    for i in range(LAYERS):
        w.add_tensor(f"blk.{i}.attn_norm.weight", ones)
        w.add_tensor(f"blk.{i}.ffn_norm.weight", ones)
        for name, theirs in (("q", "attn_q"), ("k", "attn_k"), ("v", "attn_v"),
                             ("o", "attn_output"), ("gate", "ffn_gate"), ("up", "ffn_up"),
                             ("down", "ffn_down")):
            product(f"blk.{i}.{theirs}.weight", f"{i}.{name}", *SIZES[name],
                    {"q": HEADS, "k": KEYS}.get(name, 0))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
