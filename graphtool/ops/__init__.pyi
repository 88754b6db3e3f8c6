"""Every op with its operands and attributes. Written by `pytest tests/ops/test_stub.py
--update-golden`.

Operands are positional; what a call gives depends on them: a Tracer records, a Pattern matches,
arrays evaluate. Attributes are keywords.
"""

from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.io.weights import Weight
from graphtool.ir.graph import Graph, Value
from graphtool.ir.op import Op, Operators
from graphtool.ir.plan import Plan
from graphtool.symbolic import Dim

Tensor = Operators | Value | np.ndarray[Any, Any] | np.generic | int | float

class _abs(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """|x|"""

abs: _abs

class _acos(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """the angle in [0, π] whose cosine is x"""

acos: _acos

class _acosh(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """log(x + √(x² − 1)); NaN below 1"""

acosh: _acosh

class _add(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """a + b"""

add: _add

class _all_gather(Op):
    def __call__(self, x: Tensor, /, *, axis: int, size: int) -> Any:
        """The tensors of `size` processes joined along an axis; each process gets the result."""

all_gather: _all_gather

class _all_reduce(Op):
    def __call__(self, x: Tensor, /, *, kind: str = ...) -> Any:
        """The sum, mean, maximum or minimum over all processes; each process gets the result."""

all_reduce: _all_reduce

class _and(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """a and b, bit by bit"""

and_: _and

class _arg_reduce(Op):
    def __call__(self, x: Tensor, /, *, kind: str, axis: int, last: bool = ...) -> Any:
        """the index of the maximum or minimum along an axis, which stays with size 1; the first of
        equal elements, or the last with `last`"""

arg_reduce: _arg_reduce

class _arg_reduce_window(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        kind: str,
        window: tuple[int, ...],
        strides: tuple[int, ...] | None = ...,
        padding: tuple[tuple[Dim, Dim], ...] | None = ...,
        base_dilation: tuple[int, ...] | None = ...,
        window_dilation: tuple[int, ...] | None = ...,
    ) -> Any:
        """the row-major index in x of the maximum or minimum of each window; the first of equal
        elements"""

arg_reduce_window: _arg_reduce_window

class _asin(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """the angle in [−π/2, π/2] whose sine is x"""

asin: _asin

class _asinh(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """log(x + √(x² + 1))"""

asinh: _asinh

class _assume(Op):
    def __call__(self, x: Tensor, /, *, shape: tuple[Dim, ...]) -> Any:
        """x itself. Its sizes are those of `shape` when the model runs, because the module requires
        it, though they are written otherwise"""

assume: _assume

class _atan(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """the angle in (−π/2, π/2) whose tangent is x"""

atan: _atan

class _atan2(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """the angle of the point (b, a) in radians, in [−π, π]"""

atan2: _atan2

class _atanh(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """½·log((1 + x) / (1 − x))"""

atanh: _atanh

class _attend(Op):
    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        key_factors: Tensor | None = None,
        factors: Tensor | None = None,
        /,
        *,
        causal: bool = ...,
        scale: float,
        softcap: float = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """`attention` in one kernel: softmax over whole rows, grouped heads, and a mask that is
        added to the scores; keys and values may be of 16 bits, or int8 with a factor for each row,
        and are widened as they are read"""

attend: _attend

class _attend_amx(Op):
    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        /,
        *,
        causal: bool = ...,
        scale: float,
        softcap: float = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """`attention` of bfloat16 by a matrix unit: scores, softmax and sums are float32, the
        weights are rounded to bfloat16 before they are divided by their sum; a mask is added to the
        scores"""

attend_amx: _attend_amx

class _attend_bytes(Op):
    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        grids: Tensor,
        /,
        *,
        plan: Plan | None = ...,
    ) -> Any:
        """`attention` of bytes by a matrix unit, in int32: grids are the zero points of q and k;
        the factor of their product that makes steps of scores, the zero point of scores and the
        size of a step; the zero point of v; and the steps of weights that make 1. Scores and
        weights are rounded to bytes; the result is to be multiplied by the scales of weights and of
        v"""

attend_bytes: _attend_bytes

class _attend_parts(Op):
    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        /,
        *,
        causal: bool = ...,
        scale: float,
        softcap: float = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """`attention` of float32 by a matrix unit of bfloat16: each number is a sum of parts; a
        mask is added to the scores"""

attend_parts: _attend_parts

class _attention(Op):
    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        /,
        *,
        causal: bool = ...,
        scale: float | None = ...,
        softcap: float = ...,
    ) -> Any:
        """softmax(mask(softcap(q·kᵀ·scale)))·v with q […, Hq, S, D], k and v […, Hkv, T, ·]."""

attention: _attention

class _avg_pool(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        window: tuple[int, ...],
        strides: tuple[int, ...] | None = ...,
        padding: tuple[tuple[Dim, Dim], ...] | None = ...,
        count_include_pad: bool = ...,
        dilation: tuple[int, ...] | None = ...,
        channels_last: bool = ...,
    ) -> Any:
        """The mean of each window: divided by the number of its elements inside x, or by its size
        if"""

avg_pool: _avg_pool

class _barrier(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """x itself. Passes do not merge computations on the result with the same computations on x,
        so they are done a second time"""

barrier: _barrier

class _batch_norm(Op):
    def __call__(
        self,
        x: Tensor,
        scale: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        var: Tensor,
        /,
        *,
        epsilon: float = ...,
        axis: int = ...,
        momentum: float | None = ...,
    ) -> Any:
        """For inference: (x − mean) / √(var + ε)·scale + bias with given statistics along an
        axis."""

batch_norm: _batch_norm

class _batch_norm_training(Op):
    def __call__(
        self,
        x: Tensor,
        scale: Tensor | None = None,
        bias: Tensor | None = None,
        /,
        *,
        epsilon: float = ...,
        axis: int = ...,
    ) -> Any:
        """For training: x normalised over all axes but one → (y, mean, biased variance of the"""

batch_norm_training: _batch_norm_training

class _bce_loss(Op):
    def __call__(
        self,
        x: Tensor,
        y: Tensor,
        weight: Tensor | None = None,
        /,
        *,
        from_logits: bool = ...,
        reduction: str = ...,
    ) -> Any:
        """−(y·log p + (1 − y)·log(1 − p)); p = x, or sigmoid(x) with `from_logits`. Logarithms
        are"""

bce_loss: _bce_loss

class _bernoulli(Op):
    def __call__(self, p: Tensor, state: Tensor, /) -> Any:
        """True with probability p, elementwise → (bool, next state)."""

bernoulli: _bernoulli

class _binary_cross_entropy(Op):
    def __call__(self, x: Tensor, y: Tensor, /) -> Any:
        """−(y·log x + (1 − y)·log(1 − x)) for each probability x; logarithms are at least −100."""

binary_cross_entropy: _binary_cross_entropy

class _bitcast(Op):
    def __call__(self, x: Tensor, /, *, dtype: DType) -> Any:
        """the bits of x read as another element type of the same size"""

bitcast: _bitcast

class _blas(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, plan: Plan | None = ...) -> Any:
        """a·b, computed by a CBLAS library"""

blas: _blas

class _broadcast(Op):
    def __call__(self, x: Tensor, /, *, shape: tuple[Dim, ...]) -> Any:
        """x repeated to a larger shape, by NumPy's rule: axes are aligned from the last, and axes
        of size 1 are repeated"""

broadcast: _broadcast

class _broadcast_first(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """The tensor of the first process; each process gets it."""

broadcast_first: _broadcast_first

class _cast(Op):
    def __call__(self, x: Tensor, /, *, dtype: DType, saturate: bool = ...) -> Any:
        """x converted to another element type; float to integer truncates and clamps, NaN gives
        0"""

cast: _cast

class _ceil(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """⌈x⌉: the least whole number that is at least x"""

ceil: _ceil

class _celu(Op):
    def __call__(self, x: Tensor, /, *, alpha: float = ...) -> Any:
        """x where positive, else α·(e^(x/α) − 1); 0 stays 0, also for an infinite α."""

celu: _celu

class _checkpoint(Op):
    def __call__(self, x: Tensor, /, *, region: int, edge: str) -> Any:
        """x itself, at the edge of a region whose values the backward pass computes again instead
        of storing them (torch.utils.checkpoint)"""

checkpoint: _checkpoint

class _cholesky(Op):
    def __call__(self, a: Tensor, /) -> Any:
        """L with L·Lᵀ = a, zeros above its diagonal. Only the lower half of a is read."""

cholesky: _cholesky

class _cholesky_whole(Op):
    def __call__(self, a: Tensor, /) -> Any:
        """`cholesky` of [batch, n, n] by a kernel."""

cholesky_whole: _cholesky_whole

class _clamp(Op):
    def __call__(self, x: Tensor, lo: Tensor, hi: Tensor, /) -> Any:
        """min(max(x, lo), hi); a bound may be left out"""

clamp: _clamp

class _collective_begin(Op):
    def __call__(self, x: Tensor, /, *, kind: str, size: int = ..., now: bool = ...) -> Any:
        """starts an exchange of flat arrays between all processes: sum, max, min, gather, scatter
        (a part of the sum for each) or broadcast (from the first process); it ends at
        `collective_end`, or at once with `now`"""

collective_begin: _collective_begin

class _collective_end(Op):
    def __call__(self, x: Tensor, y: Tensor, ticket: Tensor, /) -> Any:
        """waits for the exchange that `collective_begin` started and gives its result. The tensor
        that was sent is an operand too, because it is read until the exchange ends"""

collective_end: _collective_end

class _concat(Op):
    def __call__(self, *xs: Tensor, axis: int) -> Any:
        """the operands, one after the other along an axis"""

concat: _concat

class _cond(Op):
    def __call__(self, pred: Tensor, *operands: Tensor, then: Graph, orelse: Graph) -> Any:
        """the results of `then` if the predicate is true, else those of `orelse`"""

cond: _cond

class _constant(Op):
    def __call__(self, /, *, data: Weight, param: bool = ...) -> Any:
        """an array of the model; `param` marks an array that training may change"""

constant: _constant

class _conv(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        strides: tuple[int, ...] | None = ...,
        padding: tuple[tuple[Dim, Dim], ...] | None = ...,
        lhs_dilation: tuple[int, ...] | None = ...,
        rhs_dilation: tuple[int, ...] | None = ...,
        groups: int = ...,
        batch_groups: int = ...,
        channels_last: bool = ...,
        absent: bool = ...,
        dtype: DType | None = ...,
    ) -> Any:
        """y[n, o, p] = Σ x[n, c, p·stride + k·dilation − padding]·w[o, c, k] over channels c and
        positions k of the window, in any number of dimensions; `lhs_dilation` puts zeros between
        the elements of x, `groups` divides the channels, `batch_groups` the batch; where a window
        covers no element of x it reads 0, with `absent` it does not use the weight"""

conv: _conv

class _conv_amx(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        channels: int,
        window: tuple[int, int],
        strides: tuple[int, int],
        dilation: tuple[int, int] = ...,
        gathered: bool = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """2-d convolution by a matrix unit, channels last, of u8 and i8 or of 16-bit floats, with
        weights as `pack_conv_blocks` lays them out; x includes its padding, the sums are int32,
        which wrap around, or float32"""

conv_amx: _conv_amx

class _conv_bf16(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        channels: int,
        window: tuple[int, int],
        strides: tuple[int, int],
        dilation: tuple[int, int] = ...,
        padding: tuple[tuple[int, int], tuple[int, int]] | None = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """2-d convolution in bfloat16, channels last, with weights as `pack_conv_pairs` lays them
        out; the sums are float32"""

conv_bf16: _conv_bf16

class _conv_bytes(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        channels: int,
        zero: int,
        window: tuple[int, int],
        strides: tuple[int, int] = ...,
        dilation: tuple[int, int] = ...,
        padding: tuple[tuple[int, int], tuple[int, int]] = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """2-d convolution of bytes less their zero point, channels last, with padding of the zero
        point, and weights as `pack_int` lays out [KH·KW·C, O] in panels of 2; the sums are int32"""

conv_bytes: _conv_bytes

class _conv_direct(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        channels: int,
        window: tuple[int, int],
        strides: tuple[int, int],
        dilation: tuple[int, int] = ...,
        inside: tuple[int, int, int, int] | None = ...,
        padding: tuple[tuple[int, int], tuple[int, int]] | None = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """2-d convolution, channels last, with weights as `pack_conv` lays them out; x includes its
        padding, but for `padding`. Outside of `inside`, if it is given, x counts as zeros: the
        first row and the one behind the last, then the same of columns"""

conv_direct: _conv_direct

class _conv_grad_parts(Op):
    def __call__(
        self,
        g: Tensor,
        x: Tensor,
        /,
        *,
        window: tuple[int, int],
        strides: tuple[int, int],
        dilation: tuple[int, int] = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """the gradient of a convolution's weights in float32 by a matrix unit of bfloat16: y[o, (i,
        j, c)] = Σ g[(n, p, q), o]·x[n, p·stride + i·dilation, q·stride + j·dilation, c]; x includes
        its padding, and all numbers are split into parts"""

conv_grad_parts: _conv_grad_parts

class _conv_int(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        channels: int,
        depth: int,
        window: tuple[int, int],
        strides: tuple[int, int],
        dilation: tuple[int, int] = ...,
        joined: bool = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """2-d convolution of small integers, channels last, with weights as `pack_int_conv` lays
        them out; x includes its padding, the sums are int32"""

conv_int: _conv_int

class _conv_parts(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        channels: int,
        window: tuple[int, int],
        strides: tuple[int, int],
        dilation: tuple[int, int] = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """2-d convolution in float32 by a matrix unit of bfloat16, channels last; x includes its
        padding and is split into parts. The weights of each group are a matrix [KH·KW·C, O] as
        `pack_parts` lays it out"""

conv_parts: _conv_parts

class _conv_wide(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        channels: int,
        window: tuple[int, int],
        strides: tuple[int, int],
        dilation: tuple[int, int] = ...,
        padding: tuple[tuple[int, int], tuple[int, int]] | None = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """2-d convolution of floats, or of u8 and i8, channels last, with the filters [KH·KW·C, O]
        as `pack_units` lays them out; x includes its padding, but for `padding`; the sums are
        float32, or int32, which wrap around"""

conv_wide: _conv_wide

class _cos(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """the cosine of x in radians"""

cos: _cos

class _cosh(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """(eˣ + e⁻ˣ) / 2"""

cosh: _cosh

class _cross_entropy(Op):
    def __call__(
        self,
        x: Tensor,
        labels: Tensor,
        weight: Tensor | None = None,
        /,
        *,
        axis: int = ...,
        reduction: str = ...,
        ignore_index: int = ...,
        label_smoothing: float = ...,
    ) -> Any:
        """nll_loss of log_softmax(x) along an axis; float labels are probabilities of x's shape."""

cross_entropy: _cross_entropy

class _cumulative(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        kind: str,
        axis: int,
        reverse: bool = ...,
        exclusive: bool = ...,
    ) -> Any:
        """the running sum, product, maximum or minimum along an axis; with `exclusive` an element
        does not count for its own result, `reverse` starts at the end"""

cumulative: _cumulative

class _decode_image(Op):
    def __call__(self, x: Tensor, /, *, shape: tuple[Dim, ...], pixels: str = ...) -> Any:
        """the pixels u8[height, width, channels] of an encoded picture (BMP, JPEG, JPEG 2000, TIFF,
        PNG, WebP or portable map) whose sizes image_shape gives"""

decode_image: _decode_image

class _depthwise(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        strides: tuple[int, int],
        dilation: tuple[int, int] = ...,
        padding: tuple[tuple[int, int], tuple[int, int]] | None = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """2-d convolution with one filter for each channel, channels last, weights [KH, KW, C]; x
        includes its padding, but for `padding`. If the weights have more channels than x, adjacent
        pixels of x are taken as one pixel with that many channels"""

depthwise: _depthwise

class _depthwise_bytes(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        zero: int,
        window: tuple[int, int],
        strides: tuple[int, int] = ...,
        dilation: tuple[int, int] = ...,
        padding: tuple[tuple[int, int], tuple[int, int]] = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """2-d convolution of bytes less their zero point with one filter for each channel, channels
        last, with padding of the zero point and weights [C, KH, KW]; the sums are int32"""

depthwise_bytes: _depthwise_bytes

class _depthwise_grad(Op):
    def __call__(
        self,
        x: Tensor,
        g: Tensor,
        /,
        *,
        strides: tuple[int, int],
        dilation: tuple[int, int] = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """the gradient of the filters of a depthwise convolution, for each image: y[n, i, j, c] = Σ
        x[n, i·stride + p·dilation, j·stride + q·dilation, c]·g[n, p, q, c] over all p and q; x
        includes its padding"""

depthwise_grad: _depthwise_grad

class _depthwise_int(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        window: tuple[int, int],
        strides: tuple[int, int],
        dilation: tuple[int, int] = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """2-d convolution of small integers with one filter for each channel, channels last; x
        includes its padding, the sums are int32"""

depthwise_int: _depthwise_int

class _digamma(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """Γ′(x) / Γ(x) (DLMF 5.2.2)"""

digamma: _digamma

class _dim(Op):
    def __call__(self, /, *, of: Dim, dtype: DType) -> Any:
        """the value of a dimension, symbolic ones included, as a scalar"""

dim: _dim

class _div(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """a / b; of integers the quotient cut towards 0, and 0 where b = 0"""

div: _div

class _dropout(Op):
    def __call__(self, x: Tensor, state: Tensor, /, *, p: float = ...) -> Any:
        """0 with probability p, else x / (1 − p) → (y, the mask of the elements kept, next
        state)."""

dropout: _dropout

class _dynamic_slice(Op):
    def __call__(self, x: Tensor, *start: Tensor, sizes: tuple[Dim, ...]) -> Any:
        """the window of shape `sizes` that begins at a computed start in x; the start is clamped,
        so that the window fits"""

dynamic_slice: _dynamic_slice

class _dynamic_update_slice(Op):
    def __call__(self, x: Tensor, update: Tensor, *start: Tensor) -> Any:
        """x with the window at a computed start replaced; the start is clamped, so that the window
        fits"""

dynamic_update_slice: _dynamic_update_slice

class _eigh(Op):
    def __call__(self, a: Tensor, /) -> Any:
        """(w, V) with a·V = V·diag(w), w ascending. Only the lower half of a is read."""

eigh: _eigh

class _elu(Op):
    def __call__(self, x: Tensor, /, *, alpha: float = ...) -> Any:
        """x where positive, else α·(eˣ − 1). The exponential is never taken of a positive x; 0
        stays"""

elu: _elu

class _embedding(Op):
    def __call__(self, table: Tensor, ids: Tensor, /) -> Any:
        """y[i…] = table[ids[i…]]: one row of the table for each id; ids are not negative."""

embedding: _embedding

class _eq(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """whether a equals b"""

eq: _eq

class _erf(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """the error function 2/√π·∫₀ˣ exp(−t²) dt (DLMF 7.2.1)"""

erf: _erf

class _erf_inv(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """the y with erf(y) = x; ±∞ at ±1"""

erf_inv: _erf_inv

class _erfc(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """1 − erf(x), without loss of digits where erf is near 1 (DLMF 7.2.2)"""

erfc: _erfc

class _exp(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """eˣ"""

exp: _exp

class _expm1(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """eˣ − 1, without loss of digits near 0"""

expm1: _expm1

class _extreme(Op):
    def __call__(self, x: Tensor, /, *, kind: str, axis: int) -> Any:
        """The greatest or least element along an axis, which stays with size 1; `kind` is max or
        min."""

extreme: _extreme

class _extreme_tap(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        kind: str,
        window: tuple[int, ...],
        strides: tuple[int, ...] | None = ...,
        padding: tuple[tuple[Dim, Dim], ...] | None = ...,
    ) -> Any:
        """the number, within its window, of the first maximum or minimum; padding is the neutral
        element"""

extreme_tap: _extreme_tap

class _fft(Op):
    def __call__(
        self,
        real: Tensor,
        imag: Tensor,
        table: Tensor,
        /,
        *,
        inverse: bool = ...,
        half: bool = ...,
    ) -> Any:
        """`fourier` by a kernel. The table has the cosines of 2πk/n for each k, then the sines."""

fft: _fft

class _floor(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """⌊x⌋: the greatest whole number that is at most x"""

floor: _floor

class _fourier(Op):
    def __call__(
        self,
        real: Tensor,
        imag: Tensor | None = None,
        /,
        *,
        inverse: bool = ...,
        half: bool = ...,
    ) -> Any:
        """Σₜ x[t]·exp(∓2πi·k·t/n) for each k, or for the first ⌊n/2⌋ + 1 of them with `half`;
        the"""

fourier: _fourier

class _fourier_real(Op):
    def __call__(self, real: Tensor, imag: Tensor, /, *, size: Dim) -> Any:
        """The real line of length `size`, times `size`, whose spectrum has this first half."""

fourier_real: _fourier_real

class _gather(Op):
    def __call__(
        self,
        x: Tensor,
        indices: Tensor,
        /,
        *,
        axes: tuple[int, ...],
        batch: int = ...,
    ) -> Any:
        """y[b, i, rest] = x[b, indices[b, i, :] on `axes`, rest]; the last axis of the indices has
        one entry for each of `axes`, the first `batch` axes are shared"""

gather: _gather

class _ge(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """whether a is at least b"""

ge: _ge

class _gelu(Op):
    def __call__(self, x: Tensor, /, *, approximate: str = ...) -> Any:
        """x·Φ(x), by erf or by its tanh approximation (Hendrycks and Gimpel 2016)."""

gelu: _gelu

class _gemm(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
        """a·b, with b as `pack` lays it out; sums of 16-bit operands are float32"""

gemm: _gemm

class _gemm_amx(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
        """a·b by a matrix unit, of u8 and i8 or of 16-bit floats, with b as `pack_blocks` lays it
        out; the sums are int32, which wrap around, or float32"""

gemm_amx: _gemm_amx

class _gemm_amx_blocked(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
        """a·b by a matrix unit of 16-bit floats, with b as `pack_blocks` lays it out, and blocks of
        a copied; the sums are float32"""

gemm_amx_blocked: _gemm_amx_blocked

class _gemm_bf16(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
        """a·b in bfloat16, with b as `pack_pairs` lays it out; the sums are float32"""

gemm_bf16: _gemm_bf16

class _gemm_blocked(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
        """a·b in float32, with b as `pack` lays it out, and blocks of a copied"""

gemm_blocked: _gemm_blocked

class _gemm_int(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
        """a·b of small integers, with b as `pack_int` lays it out; the sums are int32 and wrap
        around"""

gemm_int: _gemm_int

class _gemm_parts(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
        """a·b in float32 by a matrix unit of bfloat16, with b as `pack_parts` lays it out, and
        blocks of a split into parts"""

gemm_parts: _gemm_parts

class _gemm_parts_moving(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
        """a·b in float32 by a matrix unit of bfloat16, with b as `pack` lays it out; both are split
        into parts block by block"""

gemm_parts_moving: _gemm_parts_moving

class _gemm_wide(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
        """a·b of floats, or of u8 and i8, with b as `pack_units` lays it out; the sums are float32,
        or int32, which wrap around"""

gemm_wide: _gemm_wide

class _gradient(Op):
    def __call__(self, x: Tensor, /, *, of: str) -> Any:
        """x itself, which is the gradient of the loss with respect to the value called `of` in a
        training step; where `of` is empty, with respect to the loss itself: the backward pass
        starts there"""

gradient: _gradient

class _group_norm(Op):
    def __call__(
        self,
        x: Tensor,
        scale: Tensor | None = None,
        bias: Tensor | None = None,
        /,
        *,
        groups: int,
        epsilon: float = ...,
    ) -> Any:
        """(x − mean) / √(var + ε)·scale + bias of x [N, C, …], over the channels of each group
        and"""

group_norm: _group_norm

class _gru(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        r: Tensor,
        bias: Tensor | None = None,
        h0: Tensor | None = None,
        /,
        *,
        direction: str = ...,
        linear_before_reset: bool = ...,
        clip: float = ...,
    ) -> Any:
        """Gates z, r, h: h' = (1 − z)·n + z·h → (y, h)."""

gru: _gru

class _gt(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """whether a is greater than b"""

gt: _gt

class _hard_sigmoid(Op):
    def __call__(self, x: Tensor, /, *, alpha: float = ..., beta: float = ...) -> Any:
        """min(max(α·x + β, 0), 1); the gradient is 0 at both bounds."""

hard_sigmoid: _hard_sigmoid

class _hard_swish(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """x·min(max(x/6 + ½, 0), 1); the gradient is 0 at −3 and 1 at 3."""

hard_swish: _hard_swish

class _hardtanh(Op):
    def __call__(self, x: Tensor, /, *, lo: float = ..., hi: float = ...) -> Any:
        """min(max(x, lo), hi); the gradient is 0 at both bounds, while that of clamp is 1 there."""

hardtanh: _hardtanh

class _householder(Op):
    def __call__(self, a: Tensor, /) -> Any:
        """Q·R = a by Householder reflections, in the form of LAPACK's geqrf."""

householder: _householder

class _huber_loss(Op):
    def __call__(self, x: Tensor, y: Tensor, /, *, delta: float = ..., reduction: str = ...) -> Any:
        """½·d² where |d| ≤ δ, else δ·(|d| − ½·δ), with d = x − y."""

huber_loss: _huber_loss

class _i0e(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """e^−|x|·I₀(x), I₀ being the modified Bessel function (DLMF 10.25)"""

i0e: _i0e

class _i1e(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """e^−|x|·I₁(x), I₁ being the modified Bessel function (DLMF 10.25)"""

i1e: _i1e

class _igamma(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """P(a, b) = ∫₀ᵇ tᵃ⁻¹·e⁻ᵗ dt / Γ(a) (DLMF 8.2.4)"""

igamma: _igamma

class _igammac(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """Q(a, b) = 1 − P(a, b) (DLMF 8.2.4)"""

igammac: _igammac

class _image_shape(Op):
    def __call__(self, x: Tensor, /, *, pixels: str = ...) -> Any:
        """the height, width and channels of an encoded picture; height and width are 0 if it cannot
        be read"""

image_shape: _image_shape

class _instance_norm(Op):
    def __call__(
        self,
        x: Tensor,
        scale: Tensor | None = None,
        bias: Tensor | None = None,
        /,
        *,
        epsilon: float = ...,
    ) -> Any:
        """(x − mean) / √(var + ε)·scale + bias of x [N, C, …], over the spatial axes of each
        channel"""

instance_norm: _instance_norm

class _iota(Op):
    def __call__(self, /, *, shape: tuple[Dim, ...], axis: int, dtype: DType) -> Any:
        """the index along an axis: 0, 1, 2, …"""

iota: _iota

class _is_finite(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """whether x is neither NaN nor infinite"""

is_finite: _is_finite

class _is_inf(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """whether x is +∞ or −∞"""

is_inf: _is_inf

class _is_nan(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """whether x is NaN"""

is_nan: _is_nan

class _kl_div(Op):
    def __call__(
        self,
        x: Tensor,
        y: Tensor,
        /,
        *,
        log_target: bool = ...,
        reduction: str = ...,
    ) -> Any:
        """y·(log y − x) with x = log q; the target is y, or log y with `log_target`. 0·log 0 is
        0."""

kl_div: _kl_div

class _layer_norm(Op):
    def __call__(
        self,
        x: Tensor,
        scale: Tensor | None = None,
        bias: Tensor | None = None,
        /,
        *,
        axes: tuple[int, ...],
        epsilon: float = ...,
    ) -> Any:
        """(x − mean) / √(var + ε)·scale + bias over axes; scale and bias broadcast to x."""

layer_norm: _layer_norm

class _le(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """whether a is at most b"""

le: _le

class _leaky_relu(Op):
    def __call__(self, x: Tensor, /, *, slope: float = ...) -> Any:
        """x where positive, else slope·x."""

leaky_relu: _leaky_relu

class _lgamma(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """log|Γ(x)| (DLMF 5.2.1)"""

lgamma: _lgamma

class _linear(Op):
    def __call__(self, x: Tensor, w: Tensor, bias: Tensor | None = None, /) -> Any:
        """x·wᵀ + bias with w [out, in]."""

linear: _linear

class _linear_bf16(Op):
    def __call__(
        self,
        x: Tensor,
        q: Tensor,
        scales: Tensor,
        zeros: Tensor | None = None,
        /,
        *,
        n: int,
        bits: int,
        block: int,
        plan: Plan | None = ...,
    ) -> Any:
        """x·wᵀ of x and w rounded to bfloat16, with sums in float32; w has n rows of `bits` bits,
        as `pack_nbits` lays them out; scales and zeros are in panels too, in float32 or float16"""

linear_bf16: _linear_bf16

class _linear_f32(Op):
    def __call__(
        self,
        x: Tensor,
        q: Tensor,
        scales: Tensor,
        zeros: Tensor | None = None,
        /,
        *,
        n: int,
        bits: int,
        block: int,
        plan: Plan | None = ...,
    ) -> Any:
        """x·wᵀ; w has n rows of `bits` bits, as `pack_nbits` lays them out; scales and zeros are in
        panels too, in float32 or float16"""

linear_f32: _linear_f32

class _linear_nbits(Op):
    def __call__(
        self,
        x: Tensor,
        packed: Tensor,
        scales: Tensor,
        zeros: Tensor | None = None,
        /,
        *,
        bits: int,
        block: int,
        activations: str = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """x·wᵀ with w[n, k] = (q − zero)·scale; each q has `bits` bits."""

linear_nbits: _linear_nbits

class _linear_q8(Op):
    def __call__(
        self,
        x: Tensor,
        q: Tensor,
        scales: Tensor,
        zeros: Tensor | None = None,
        /,
        *,
        n: int,
        bits: int,
        block: int,
        plan: Plan | None = ...,
    ) -> Any:
        """x·wᵀ of x rounded as by `round_blocks`; w has n rows of `bits` bits, as `pack_nbits` lays
        them out; scales and zeros are in panels too, in float32 or float16"""

linear_q8: _linear_q8

class _log(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """the natural logarithm of x"""

log: _log

class _log1p(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """log(1 + x), without loss of digits near 0"""

log1p: _log1p

class _log_sigmoid(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """log(sigmoid(x)), stable on both sides."""

log_sigmoid: _log_sigmoid

class _log_softmax(Op):
    def __call__(self, x: Tensor, /, *, axis: int) -> Any:
        """x − max − log Σ exp(x − max) along an axis."""

log_softmax: _log_softmax

class _logsumexp(Op):
    def __call__(self, x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
        """log Σ exp(x) over axes, which stay with size 1; computed as max + log Σ exp(x − max)."""

logsumexp: _logsumexp

class _lp_pool(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        window: tuple[int, ...],
        strides: tuple[int, ...] | None = ...,
        padding: tuple[tuple[Dim, Dim], ...] | None = ...,
        order: float = ...,
        dilation: tuple[int, ...] | None = ...,
        channels_last: bool = ...,
    ) -> Any:
        """(Σ |x|ᵖ)^(1/p) of each window."""

lp_pool: _lp_pool

class _lrn(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        size: int,
        alpha: float = ...,
        beta: float = ...,
        bias: float = ...,
    ) -> Any:
        """x / (bias + α/size·Σ x²)^β. The sum is over `size` neighbouring channels (axis 1); ⌊(size
        −"""

lrn: _lrn

class _lstm(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        r: Tensor,
        bias: Tensor | None = None,
        h0: Tensor | None = None,
        c0: Tensor | None = None,
        peephole: Tensor | None = None,
        /,
        *,
        direction: str = ...,
        clip: float = ...,
    ) -> Any:
        """Gates i, o, f, c: c' = f·c + i·g, h' = o·tanh(c') → (y, h, c). The peephole weights are
        in"""

lstm: _lstm

class _lt(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """whether a is less than b"""

lt: _lt

class _lu(Op):
    def __call__(self, a: Tensor, /) -> Any:
        """P·L·U = a. The results are L below and U on and above the diagonal, and the row that
        each"""

lu: _lu

class _lu_solve(Op):
    def __call__(self, factors: Tensor, swaps: Tensor, b: Tensor, /) -> Any:
        """x with a·x = b, for the factors and swaps of `lu(a)`."""

lu_solve: _lu_solve

class _matmul(Op):
    def __call__(
        self,
        a: Tensor,
        b: Tensor,
        /,
        *,
        transpose_a: bool = ...,
        transpose_b: bool = ...,
        dtype: DType | None = ...,
    ) -> Any:
        """Σₖ a[…, i, k]·b[…, k, j] over the last two axes of each operand, which may be transposed;
        leading axes broadcast. `dtype` is the element type of the sums"""

matmul: _matmul

class _max(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """the greater of a and b; NaN if one is NaN"""

max: _max

class _max_pool(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        window: tuple[int, ...],
        strides: tuple[int, ...] | None = ...,
        padding: tuple[tuple[Dim, Dim], ...] | None = ...,
        dilation: tuple[int, ...] | None = ...,
        channels_last: bool = ...,
    ) -> Any:
        """The greatest element of each window; NaN if one element is NaN."""

max_pool: _max_pool

class _min(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """the lesser of a and b; NaN if one is NaN"""

min: _min

class _mish(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """x·tanh(log(1 + eˣ))."""

mish: _mish

class _mod(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """a − b·⌊a / b⌋, with the sign of b, as % in Python; of integers 0 where b = 0"""

mod: _mod

class _mse_loss(Op):
    def __call__(self, x: Tensor, y: Tensor, /, *, reduction: str = ...) -> Any:
        """(x − y)²"""

mse_loss: _mse_loss

class _mul(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """a·b"""

mul: _mul

class _ne(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """whether a differs from b"""

ne: _ne

class _neg(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """−x"""

neg: _neg

class _next_after(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """the float beside a on the way to b (IEEE 754)"""

next_after: _next_after

class _nll_loss(Op):
    def __call__(
        self,
        x: Tensor,
        labels: Tensor,
        weight: Tensor | None = None,
        /,
        *,
        axis: int = ...,
        reduction: str = ...,
        ignore_index: int = ...,
    ) -> Any:
        """−x[label]·weight[label] with x = log p along an axis; the mean is divided by the sum
        of"""

nll_loss: _nll_loss

class _nonzero(Op):
    def __call__(self, x: Tensor, /, *, size: Dim) -> Any:
        """the coordinates of the elements that are not zero, i64[size, rank], row-major"""

nonzero: _nonzero

class _norm(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        axes: tuple[int, ...],
        order: float = ...,
        epsilon: float = ...,
    ) -> Any:
        """(Σ |x|ᵖ)^(1/p) over axes, which stay with size 1. p may be ±∞; p = 0 counts the
        nonzeros."""

norm: _norm

class _normal(Op):
    def __call__(
        self,
        state: Tensor,
        /,
        *,
        shape: tuple[Dim, ...],
        dtype: DType = ...,
        mean: float = ...,
        std: float = ...,
    ) -> Any:
        """Normally distributed, by the method of Box and Muller → (values, next state)."""

normal: _normal

class _not(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """not x, bit by bit"""

not_: _not

class _or(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """a or b, bit by bit"""

or_: _or

class _pack(Op):
    def __call__(self, b: Tensor, /, *, nr: int, transpose: bool = ...) -> Any:
        """the right-hand side of a product, [..., K, N] → [..., ⌈N/nr⌉, K, nr]: panels of nr
        columns, the last one padded with zeros"""

pack: _pack

class _pack_blocks(Op):
    def __call__(self, b: Tensor, /, *, nr: int, transpose: bool = ...) -> Any:
        """the right-hand side of a product by a matrix unit, in panels of nr columns; the four
        bytes of a sum that one instruction adds are adjacent, and each column is filled up with
        zeros to whole tiles"""

pack_blocks: _pack_blocks

class _pack_conv(Op):
    def __call__(self, w: Tensor, /, *, nr: int, groups: int = ...) -> Any:
        """convolution weights [O, C, KH, KW] → [groups, ⌈O/nr⌉, KH, KW·C, nr]: panels of nr output
        channels"""

pack_conv: _pack_conv

class _pack_conv_blocks(Op):
    def __call__(self, w: Tensor, /, *, nr: int, gathered: bool = ...) -> Any:
        """convolution weights for a matrix unit, in panels of nr output channels; the four bytes of
        a sum that one instruction adds are adjacent, and the channels of each tap, or all that an
        output reads, are filled up with zeros to whole tiles"""

pack_conv_blocks: _pack_conv_blocks

class _pack_conv_pairs(Op):
    def __call__(self, w: Tensor, /, *, nr: int, groups: int = ..., whole: bool = ...) -> Any:
        """bfloat16 convolution weights in panels of nr output channels, two elements of the same
        sum adjacent"""

pack_conv_pairs: _pack_conv_pairs

class _pack_int(Op):
    def __call__(self, b: Tensor, /, *, nr: int, transpose: bool = ...) -> Any:
        """the right-hand side of an integer product in panels of nr columns; the elements of a sum
        that one instruction adds are adjacent"""

pack_int: _pack_int

class _pack_int_conv(Op):
    def __call__(self, w: Tensor, /, *, nr: int, groups: int = ..., joined: bool = ...) -> Any:
        """integer convolution weights in panels of nr output channels; the elements of a sum that
        one instruction adds are adjacent"""

pack_int_conv: _pack_int_conv

class _pack_int_depthwise(Op):
    def __call__(self, w: Tensor, /, *, high: int, stride: int) -> Any:
        """integer weights of one filter for each channel; rows of a filter that one instruction
        adds are adjacent, for `high` rows of results"""

pack_int_depthwise: _pack_int_depthwise

class _pack_int_winograd(Op):
    def __call__(self, w: Tensor, /, *, tile: int, nr: int) -> Any:
        """3×3 integer weights transformed by Winograd's G times its common denominator, so that
        they stay integers, in panels of nr output channels"""

pack_int_winograd: _pack_int_winograd

class _pack_nbits(Op):
    def __call__(self, packed: Tensor, /, *, lanes: int, bits: int) -> Any:
        """weights of few bits, [N, blocks, bytes], in panels of `lanes` rows: four bytes of a row
        are beside those of the next row"""

pack_nbits: _pack_nbits

class _pack_pairs(Op):
    def __call__(self, b: Tensor, /, *, nr: int, transpose: bool = ...) -> Any:
        """the right-hand side of a bfloat16 product, [..., K, N] → [..., ⌈N/nr⌉, ⌈K/2⌉, nr, 2]: two
        elements of the same sum are adjacent"""

pack_pairs: _pack_pairs

class _pack_parts(Op):
    def __call__(self, b: Tensor, /, *, nr: int, parts: int = ..., transpose: bool = ...) -> Any:
        """the right-hand side of a product of float32 by a matrix unit, in panels of nr columns:
        for each step of 32 rows the bfloat16 parts of w·2²⁴, one after the other, each as
        `pack_blocks` lays it out"""

pack_parts: _pack_parts

class _pack_units(Op):
    def __call__(self, b: Tensor, /, *, nr: int, transpose: bool = ...) -> Any:
        """the right-hand side of a product by four warps together, in panels of nr columns; 16
        bytes of a column are adjacent, and each column is filled up with zeros to a multiple of
        128"""

pack_units: _pack_units

class _pack_winograd(Op):
    def __call__(self, w: Tensor, /, *, tile: int, nr: int) -> Any:
        """3×3 weights g transformed to U = G·g·Gᵀ, in panels of nr output channels (Lavin and Gray,
        arXiv:1509.09308)"""

pack_winograd: _pack_winograd

class _pack_winograd_line(Op):
    def __call__(self, w: Tensor, /, *, tile: int, nr: int, upright: bool) -> Any:
        """convolution weights in groups of three taps along one axis, each transformed to G·g, in
        panels of nr output channels"""

pack_winograd_line: _pack_winograd_line

class _pad(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        lo: tuple[Dim, ...],
        hi: tuple[Dim, ...],
        interior: tuple[int, ...] | None = ...,
        value: float = ...,
    ) -> Any:
        """x with a value put before, after and between its elements; negative counts take elements
        away"""

pad: _pad

class _polygamma(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """the a-th derivative of digamma at b, a a whole number ≥ 0 (DLMF 5.15)"""

polygamma: _polygamma

class _pooled(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        kind: str,
        window: tuple[int, int],
        strides: tuple[int, int],
        dilation: tuple[int, int] = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """each window of an image reduced by `kind`, channels last; x includes its padding; 16 bits
        become float32"""

pooled: _pooled

class _pow(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """aᵇ; of integers cut towards 0 where b is negative"""

pow: _pow

class _prelu(Op):
    def __call__(self, x: Tensor, slope: Tensor, /) -> Any:
        """x where positive, else slope·x; the slope broadcasts as NumPy does."""

prelu: _prelu

class _process_rank(Op):
    def __call__(self, /) -> Any:
        """the rank of this process, counted from 0"""

process_rank: _process_rank

class _recurrence(Op):
    def __call__(
        self,
        p: Tensor,
        r: Tensor,
        bias: Tensor | None = None,
        h0: Tensor | None = None,
        c0: Tensor | None = None,
        /,
        *,
        kind: str,
        direction: str = ...,
        packed: int = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """The steps of an lstm, gru, gru_linear, tanh or relu layer → (y, h, kept) or (y, h, c,
        kept)."""

recurrence: _recurrence

class _recurrence_grad(Op):
    def __call__(
        self,
        r: Tensor,
        y: Tensor,
        kept: Tensor,
        gy: Tensor | None = None,
        gh: Tensor | None = None,
        h0: Tensor | None = None,
        gc: Tensor | None = None,
        c0: Tensor | None = None,
        /,
        *,
        kind: str,
        direction: str = ...,
        packed: int = ...,
        plan: Plan | None = ...,
    ) -> Any:
        """The gradients of p and of the first states of a recurrence."""

recurrence_grad: _recurrence_grad

class _reduce_and(Op):
    def __call__(self, x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
        """the logical and over axes, which stay with size 1"""

reduce_and: _reduce_and

class _reduce_max(Op):
    def __call__(self, x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
        """the maximum over axes, which stay with size 1"""

reduce_max: _reduce_max

class _reduce_mean(Op):
    def __call__(self, x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
        """Σ x / n over axes, kept as 1; integers truncate."""

reduce_mean: _reduce_mean

class _reduce_min(Op):
    def __call__(self, x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
        """the minimum over axes, which stay with size 1"""

reduce_min: _reduce_min

class _reduce_or(Op):
    def __call__(self, x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
        """the logical or over axes, which stay with size 1"""

reduce_or: _reduce_or

class _reduce_prod(Op):
    def __call__(self, x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
        """the product over axes, which stay with size 1"""

reduce_prod: _reduce_prod

class _reduce_scatter(Op):
    def __call__(self, x: Tensor, /, *, axis: int, size: int) -> Any:
        """The sum over `size` processes; each process gets one part of it along an axis."""

reduce_scatter: _reduce_scatter

class _reduce_sum(Op):
    def __call__(self, x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
        """the sum over axes, which stay with size 1"""

reduce_sum: _reduce_sum

class _reduce_var(Op):
    def __call__(self, x: Tensor, /, *, axes: tuple[int, ...], correction: int = ...) -> Any:
        """Σ (x − mean)² / (n − correction) over axes, in two passes."""

reduce_var: _reduce_var

class _reduce_window(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        kind: str,
        window: tuple[int, ...],
        strides: tuple[int, ...] | None = ...,
        padding: tuple[tuple[Dim, Dim], ...] | None = ...,
        base_dilation: tuple[int, ...] | None = ...,
        window_dilation: tuple[int, ...] | None = ...,
    ) -> Any:
        """the sum, product, maximum or minimum of each window; padding is the neutral element"""

reduce_window: _reduce_window

class _reflect(Op):
    def __call__(self, packed: Tensor, tau: Tensor, x: Tensor, /, *, transpose: bool = ...) -> Any:
        """Q·x, or Qᵀ·x with `transpose`, for the Q that `householder` computed."""

reflect: _reflect

class _regex_match(Op):
    def __call__(self, x: Tensor, /, *, pattern: str) -> Any:
        """whether the whole string matches the regular expression, in Python's syntax"""

regex_match: _regex_match

class _relu(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """max(x, 0), written as a select: the gradient at 0 is then 0, and NaN stays NaN."""

relu: _relu

class _rem(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """a − b·trunc(a / b), with the sign of a, as fmod in C; of integers 0 where b = 0"""

rem: _rem

class _reshape(Op):
    def __call__(self, x: Tensor, /, *, shape: tuple[Dim, ...]) -> Any:
        """the same elements in row-major order under another shape"""

reshape: _reshape

class _resize(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        sizes: tuple[Dim, ...],
        mode: str = ...,
        coordinates: str = ...,
        rounding: str = ...,
        scales: tuple[float, ...] | None = ...,
        roi: tuple[float, ...] | None = ...,
        cubic: float = ...,
        exclude_outside: bool = ...,
        antialias: bool = ...,
        extrapolation: float = ...,
    ) -> Any:
        """x resampled to `sizes` (all axes), by nearest, linear or cubic interpolation."""

resize: _resize

class _resize_by(Op):
    def __call__(
        self,
        x: Tensor,
        scales: Tensor | None = None,
        roi: Tensor | None = None,
        /,
        *,
        sizes: tuple[Dim, ...],
        mode: str = ...,
        coordinates: str = ...,
        rounding: str = ...,
        cubic: float = ...,
        exclude_outside: bool = ...,
        antialias: bool = ...,
        extrapolation: float = ...,
    ) -> Any:
        """`resize` with computed scales f64[rank] and region f64[2·rank]; `sizes` is the
        resulting"""

resize_by: _resize_by

class _reverse(Op):
    def __call__(self, x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
        """x in reverse order along axes"""

reverse: _reverse

class _rms_norm(Op):
    def __call__(
        self,
        x: Tensor,
        scale: Tensor | None = None,
        /,
        *,
        axes: tuple[int, ...],
        epsilon: float = ...,
    ) -> Any:
        """x / √(mean(x²) + ε)·scale over axes."""

rms_norm: _rms_norm

class _rng_bits(Op):
    def __call__(self, state: Tensor, /, *, shape: tuple[Dim, ...]) -> Any:
        """Independent uniform u32 → (bits, next state)."""

rng_bits: _rng_bits

class _rnn(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        r: Tensor,
        bias: Tensor | None = None,
        h0: Tensor | None = None,
        /,
        *,
        direction: str = ...,
        activation: str = ...,
        clip: float = ...,
    ) -> Any:
        """h' = tanh(x·w + h·u + b), or relu of it → (y, h)."""

rnn: _rnn

class _rotary_embedding(Op):
    def __call__(self, x: Tensor, cos: Tensor, sin: Tensor, /, *, interleaved: bool = ...) -> Any:
        """Rotate pairs of the last axis: (a, b) → (a·cos − b·sin, a·sin + b·cos)."""

rotary_embedding: _rotary_embedding

class _round(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """the nearest whole number; of two equally near ones the even one"""

round: _round

class _round_blocks(Op):
    def __call__(self, x: Tensor, /, *, block: int) -> Any:
        """Rows rounded to 8 bits: each `block` adjacent columns to multiples of a 127th of"""

round_blocks: _round_blocks

class _rsqrt(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """1 / √x"""

rsqrt: _rsqrt

class _scan(Op):
    def __call__(
        self,
        *operands: Tensor,
        body: Graph,
        carries: int,
        xs: int,
        length: Dim,
        reverse: bool = ...,
    ) -> Any:
        """runs `body` for each row along the first axis. The operands are the carries, then `xs`
        operands that are read row by row, then operands that stay the same. The results are the
        last carries, then the other results of all rows, stacked"""

scan: _scan

class _scatter(Op):
    def __call__(
        self,
        x: Tensor,
        indices: Tensor,
        updates: Tensor,
        /,
        *,
        axes: tuple[int, ...],
        batch: int = ...,
        kind: str = ...,
    ) -> Any:
        """x with the updates set, added, multiplied, or combined by minimum or maximum, at the
        positions that `gather` would read; if several are set at one position, the last one
        stays"""

scatter: _scatter

class _select(Op):
    def __call__(self, cond: Tensor, a: Tensor, b: Tensor, /) -> Any:
        """a where cond is true, else b"""

select: _select

class _selu(Op):
    def __call__(self, x: Tensor, /, *, alpha: float = ..., gamma: float = ...) -> Any:
        """γ·elu(x, α) (Klambauer et al. 2017)."""

selu: _selu

class _shift_left(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """a·2ᵇ: the bits of a moved up by b places; 0 from the width of the type on"""

shift_left: _shift_left

class _shift_right(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """⌊a / 2ᵇ⌋: the bits of a moved down by b places; its sign is repeated"""

shift_right: _shift_right

class _sigmoid(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """1 / (1 + e⁻ˣ)"""

sigmoid: _sigmoid

class _sign(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """−1, 0 or 1, by the sign of x"""

sign: _sign

class _silu(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """x·sigmoid(x), also called swish."""

silu: _silu

class _sin(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """the sine of x in radians"""

sin: _sin

class _sinh(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """(eˣ − e⁻ˣ) / 2"""

sinh: _sinh

class _size(Op):
    def __call__(
        self,
        n: Tensor,
        /,
        *,
        size: Dim,
        most: Dim | None = ...,
        checked: bool = ...,
    ) -> Any:
        """n itself. After this node the symbol `size` has its value, which is at most `most`. A
        `checked` node stays even if nothing uses the symbol"""

size: _size

class _slice(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        start: tuple[Dim, ...],
        limit: tuple[Dim, ...],
        strides: tuple[int, ...],
    ) -> Any:
        """x[start:limit:stride] on every axis; strides are positive"""

slice: _slice

class _softmax(Op):
    def __call__(self, x: Tensor, /, *, axis: int) -> Any:
        """exp(x − max) / Σ exp(x − max) along an axis."""

softmax: _softmax

class _softplus(Op):
    def __call__(self, x: Tensor, /, *, beta: float = ..., threshold: float = ...) -> Any:
        """log(1 + e^(β·x)) / β, and x itself where β·x > threshold; never overflows."""

softplus: _softplus

class _softsign(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """x / (1 + |x|)."""

softsign: _softsign

class _sort(Op):
    def __call__(self, x: Tensor, /, *, axis: int, descending: bool = ...) -> Any:
        """the elements in order along an axis, and their indices; equal elements stay in their
        order"""

sort: _sort

class _spread(Op):
    def __call__(self, x: Tensor, /, *, shape: tuple[Dim, ...]) -> Any:
        """x with these sizes: each is that of x, or x has 1 element there, which is repeated. A run
        decides which of the two: element i is that at min(i, size − 1)"""

spread: _spread

class _sqrt(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """√x; its gradient at 0 is ∞"""

sqrt: _sqrt

class _stack(Op):
    def __call__(self, *xs: Tensor, axis: int) -> Any:
        """The operands joined along a new axis."""

stack: _stack

class _stop_gradient(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """x itself; no gradient flows through it"""

stop_gradient: _stop_gradient

class _string_concat(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """a + b, two strings joined"""

string_concat: _string_concat

class _string_normalize(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        size: Dim,
        case: str = ...,
        stopwords: tuple[str, ...] = ...,
        case_sensitive: bool = ...,
    ) -> Any:
        """the strings that are not stop words, in upper or lower case; one empty string if none is
        left"""

string_normalize: _string_normalize

class _string_split(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        size: Dim,
        delimiter: str = ...,
        most: int | None = ...,
    ) -> Any:
        """the parts of each string between delimiters, and their number. An empty delimiter means
        white space; `most` is the greatest number of cuts; rows are filled with empty strings up to
        `size`"""

string_split: _string_split

class _string_tokens(Op):
    def __call__(
        self,
        x: Tensor,
        /,
        *,
        size: Dim,
        tokens: str = ...,
        separators: tuple[str, ...] = ...,
        least: int = ...,
        marks: bool = ...,
        fill: str = ...,
    ) -> Any:
        """the matches of the pattern `tokens`, or the parts between separators, that have at least
        `least` letters; rows are filled up to `size`; `marks` puts \x02 before and \x03 after each
        row"""

string_tokens: _string_tokens

class _sub(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """a − b"""

sub: _sub

class _svd(Op):
    def __call__(self, a: Tensor, /, *, full: bool = ...) -> Any:
        """(U, s, Vᵀ) with U·diag(s)·Vᵀ = a, s descending; `full` makes U and V square."""

svd: _svd

class _swapped(Op):
    def __call__(self, swaps: Tensor, /, *, size: Dim) -> Any:
        """0, 1, …, size − 1 after swapping element j with element swaps[j], for each j in order."""

swapped: _swapped

class _tan(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """the tangent of x in radians"""

tan: _tan

class _tanh(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)"""

tanh: _tanh

class _thresholded_relu(Op):
    def __call__(self, x: Tensor, /, *, alpha: float = ...) -> Any:
        """x where x > α, else 0; NaN gives 0."""

thresholded_relu: _thresholded_relu

class _top_k(Op):
    def __call__(self, x: Tensor, /, *, k: Dim, axis: int, largest: bool = ...) -> Any:
        """the k greatest (or least) elements in order along an axis, and their indices; the first
        of equal elements is taken"""

top_k: _top_k

class _transpose(Op):
    def __call__(self, x: Tensor, /, *, perm: tuple[int, ...]) -> Any:
        """x with its axes in another order: axis k of the result is axis perm[k] of x"""

transpose: _transpose

class _trees(Op):
    def __call__(
        self,
        x: Tensor,
        kinds: Tensor,
        splits: Tensor,
        children: Tensor,
        roots: Tensor,
        weights: Tensor,
        /,
        *,
        depth: int,
        compare: str = ...,
        missing: bool = ...,
        fold: str = ...,
    ) -> Any:
        """The weights of the leaves that each row of x reaches, combined over all trees: [N,
        targets]."""

trees: _trees

class _triangular_solve(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, lower: bool = ..., unit: bool = ...) -> Any:
        """x with a·x = b. Only one half of a is read; with `unit` its diagonal is taken as ones."""

triangular_solve: _triangular_solve

class _triangular_whole(Op):
    def __call__(self, a: Tensor, b: Tensor, /, *, lower: bool = ..., unit: bool = ...) -> Any:
        """`triangular_solve` of [batch, n, n] and [batch, n, m] by a kernel."""

triangular_whole: _triangular_whole

class _trunc(Op):
    def __call__(self, x: Tensor, /) -> Any:
        """the whole part of x, cut towards 0"""

trunc: _trunc

class _uniform(Op):
    def __call__(
        self,
        state: Tensor,
        /,
        *,
        shape: tuple[Dim, ...],
        dtype: DType = ...,
        low: float = ...,
        high: float = ...,
    ) -> Any:
        """Uniform on [low, high) → (values, next state)."""

uniform: _uniform

class _unknown_gradient(Op):
    def __call__(self, x: Tensor, /, *, reason: str) -> Any:
        """x itself. Its author defined a gradient that capture could not see, so differentiating
        through it is refused"""

unknown_gradient: _unknown_gradient

class _unpool(Op):
    def __call__(
        self,
        g: Tensor,
        taps: Tensor,
        /,
        *,
        shape: tuple[Dim, ...],
        window: tuple[int, ...],
        strides: tuple[int, ...] | None = ...,
        padding: tuple[tuple[Dim, Dim], ...] | None = ...,
    ) -> Any:
        """the gradient of a maximum over windows: each g is added at the element of its window
        whose number is in `taps`; all other elements are 0"""

unpool: _unpool

class _while(Op):
    def __call__(
        self,
        *operands: Tensor,
        cond: Graph,
        body: Graph,
        carries: int,
        bound: int | None = ...,
    ) -> Any:
        """the last values of the carries. They start as the first `carries` operands, and `body`
        replaces them as long as `cond` is true; the other operands stay the same. `bound` limits
        the number of iterations"""

while_: _while

class _winograd(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        small: Tensor | None = None,
        /,
        *,
        channels: int,
        tile: int,
        plan: Plan | None = ...,
        groups: int = ...,
    ) -> Any:
        """3×3 convolution of stride 1, channels last, by Winograd's algorithm F(t×t, 3×3) with t =
        `tile` (Lavin and Gray, arXiv:1509.09308). A third operand holds the filters for tiles of 2
        too, by which a run computes few outputs"""

winograd: _winograd

class _winograd_int(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        channels: int,
        tile: int,
        plan: Plan | None = ...,
    ) -> Any:
        """3×3 convolution of small integers of stride 1, channels last, by Winograd's algorithm;
        exact while sums stay below 2²⁹ with tiles of 2, 2²⁵ with tiles of 4"""

winograd_int: _winograd_int

class _winograd_line(Op):
    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        /,
        *,
        channels: int,
        tile: int,
        window: tuple[int, int],
        dilation: tuple[int, int],
        upright: bool,
        plan: Plan | None = ...,
    ) -> Any:
        """convolution of stride 1, channels last, by Winograd's algorithm F(t, 3) along one axis:
        along rows, or along columns if `upright`"""

winograd_line: _winograd_line

class _xor(Op):
    def __call__(self, a: Tensor, b: Tensor, /) -> Any:
        """either a or b, bit by bit"""

xor: _xor
