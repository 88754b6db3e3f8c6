"""Writes `samples/`: cases of `tests/lab/jax_cases` as JAX exports them, with inputs and results.

`python -m tests.importers.stablehlo.make_samples` needs jax; the tests do not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from tests.lab.jax_cases import all_cases, words
from tests.lab.jaxops import exported

FOLDER = Path(__file__).parent / "samples"
NAMES = words("""
    numpy.einsum numpy.pad numpy.cumsum numpy.argmax numpy.divmod numpy.index numpy.at.set
    numpy.at.add lax.bitcast_convert_type lax.shift lax.pad lax.dot_general_types
    lax.conv_grouped lax.conv_batch_groups lax.conv_mixed_axes lax.conv_gradients
    lax.reduce_window_dilated lax.reduce_window_other lax.select_and_scatter lax.reduce
    lax.cumulative lax.top_k lax.dynamic_slice lax.gather lax.gather_batched lax.scatter
    lax.scatter_batched lax.while_loop lax.scan lax.switch lax.acos lax.cbrt
    lax.population_count nn.gelu_exact nn.dot_product_attention random.normal random.loop
    programs.mlp_adam_step programs.attention_gradient programs.rnn_gradient
    lax.rng_bit_generator lax.approx_max_k
    numpy.complex numpy.fft numpy.fftn lax.fft scipy.fft.dct
    numpy.lexsort numpy.at.mul numpy.linalg.solve numpy.linalg.qr lax.sort lax.sort_nan
    lax.linalg.triangular_solve random.permutation programs.kalman_filter
    programs.convnet_gradient programs.pendulum programs.k-means programs.beam_step
""")


def open_sizes() -> str:
    """A program with two open sizes, b of 2 to 64 and t a multiple of 4."""
    import jax
    import jax.numpy as jnp

    def fn(x: Any, w: Any) -> Any:
        h = jnp.concatenate([x, x]) @ w
        return (jax.nn.softmax(h), x.reshape(-1), h[1:], x.mean(0), jnp.arange(x.shape[0]),
                jnp.pad(x, ((1, 0), (0, 2))), jnp.cumsum(x, 0))
    b, t = jax.export.symbolic_shape("b, t", constraints=["b >= 2", "b <= 64", "mod(t, 4) == 0"])
    made = jax.export.export(jax.jit(fn))(*(jax.ShapeDtypeStruct(s, np.float32)
                                            for s in ((b, t), (t, 5))))
    return str(made.mlir_module())


def divided_sizes() -> str:
    """A program that divides its open size n: padding, halves, places of elements."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def fn(x: Any, w: Any) -> Any:
        rows = x[0, 0]
        return (lax.conv_general_dilated(x, w, (1, 2), "SAME"),
                lax.reduce_window(x, 0.0, lax.add, (1, 1, 1, 3), (1, 1, 1, 3), "SAME"),
                jnp.pad(rows, ((0, 0), (0, -x.shape[3] % 4))), rows[:, x.shape[3] // 2:],
                jnp.median(x), jnp.roll(rows, 1, 1))
    (n,) = jax.export.symbolic_shape("n", constraints=["n >= 2"])
    made = jax.export.export(jax.jit(fn))(*(jax.ShapeDtypeStruct(s, np.float32)
                                            for s in ((1, 1, 2, n), (1, 1, 1, 3))))
    return str(made.mlir_module())


OPERATIONS = [
    "map f32", "torch_index_select batch", "einsum bij,bkj->bik", "batch_norm_training f32",
    "batch_norm_grad f32", "batch_norm_inference f32", "rng_bit_generator THREE_FRY ui32 [3, 5]",
    "rng_bit_generator THREE_FRY ui64 [7]", "rng_bit_generator PHILOX ui64 [7]",
    "all_reduce one device", "tuple one device", "scatter two tensors", "scatter batched mixed f32",
    "scatter windows multiply complex<f32>", "sort any comparator", "divide i8 [25] special",
    "remainder ui8 [25] special",
    "chlo.broadcast_add complex<f32> [3, 5]", "chlo.broadcast_compare f32 -> i1 [3, 5]",
    "chlo.mulhi i64 [3, 5]", "chlo.asin complex<f32> [3, 5]", "sqrt complex<f32> [3, 5]",
    "power complex<f32> [3, 5]", "while counted complex<f32>", "case complex<f32> 1",
    "reduce multiply complex<f32> [1, 2]", "reduce_window multiply complex<f32>",
    "convolution plain complex<f32>", "dot_general batch complex<f32>",
    "cholesky complex<f64> [2, 3, 3] true",
    "triangular_solve complex<f64> [4, 4] false true false ADJOINT", "convolution no space f32",
    "reduce_precision f32 [49]", "add quantised axis", "dot_general quantised tensor<3x5x!"]


def operations() -> tuple[str, list[Any], list[Any]]:
    """Operations of StableHLO in one program, the arrays that it reads, and the results of XLA.
    Complex arrays are two."""
    from tests.lab.stablehlo import by_xla, parts, together
    from tests.lab.stablehlo_cases import all_cases
    found = {c.name: c for c in all_cases()}
    chosen = [found[n] for n in OPERATIONS]
    results = [x for c in chosen for x in (c.expected or by_xla(c.text, c.inputs))]
    return together(chosen), parts([x for c in chosen for x in c.inputs]), results


def plain(text: str) -> str:
    """The text with names of files instead of paths."""
    return re.sub(r'"/[^"\n]*/([^"/\n]+\.py)"', r'"\1"', text)


def main() -> None:
    """Write the files of every named case, and of the operations of StableHLO."""
    (FOLDER.parent / "open" / "sizes.mlir").write_text(plain(open_sizes()))
    (FOLDER.parent / "open" / "divided.mlir").write_text(plain(divided_sizes()))
    found = {c.name.replace(" ", "_"): c for c in all_cases()}
    made = {n: exported(found[n]) for n in NAMES} | {"stablehlo.operations": operations()}
    for name, (text, inputs, outputs) in made.items():
        (FOLDER / f"{name}.mlir").write_text(plain(text))
        np.savez_compressed(FOLDER / f"{name}.npz", **{  # type: ignore[arg-type]
            f"{kind}_{i}": x for kind, xs in (("in", inputs), ("out", outputs))
            for i, x in enumerate(xs)})


if __name__ == "__main__":
    main()
