"""Writes `samples/`: cases of `benchmarks/jax_cases` as JAX exports them, with inputs and results.

`python -m tests.importers.stablehlo.make_samples` needs jax; the tests do not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.jax_cases import all_cases, words
from benchmarks.jaxops import exported

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


def plain(text: str) -> str:
    """The text with names of files instead of paths."""
    return re.sub(r'"/[^"\n]*/([^"/\n]+\.py)"', r'"\1"', text)


def main() -> None:
    """Write the files of every named case."""
    (FOLDER.parent / "open" / "sizes.mlir").write_text(plain(open_sizes()))
    found = {c.name.replace(" ", "_"): c for c in all_cases()}
    for name in NAMES:
        text, inputs, outputs = exported(found[name])
        (FOLDER / f"{name}.mlir").write_text(plain(text))
        np.savez_compressed(FOLDER / f"{name}.npz", **{  # type: ignore[arg-type]
            f"{kind}_{i}": x for kind, xs in (("in", inputs), ("out", outputs))
            for i, x in enumerate(xs)})


if __name__ == "__main__":
    main()
