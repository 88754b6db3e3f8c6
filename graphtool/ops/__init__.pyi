"""Every op as a function. Written by `pytest tests/ops/test_stub.py --update-golden`.

Operands are positional; what a call gives depends on them: a Tracer records, a Pattern matches,
arrays evaluate. Attributes are keywords. The record of an op is `graphtool.ir.op.OPS[name]`.
"""

from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.io.weights import Weight
from graphtool.ir.graph import Graph, Value
from graphtool.ir.op import Operators
from graphtool.plan import Plan
from graphtool.symbolic import Dim

Tensor = Operators | Value | np.ndarray[Any, Any] | np.generic | int | float

def abs(x: Tensor, /) -> Any:
    """|x|"""

def acos(x: Tensor, /) -> Any:
    """the angle in [0, π] whose cosine is x"""

def acosh(x: Tensor, /) -> Any:
    """log(x + √(x² − 1)); NaN below 1"""

def add(a: Tensor, b: Tensor, /) -> Any:
    """a + b"""

def all_gather(x: Tensor, /, *, axis: int, size: int) -> Any:
    """The tensors of `size` processes one behind the other along an axis, in each of them."""

def all_reduce(x: Tensor, /, *, kind: str = ...) -> Any:
    """The sum, mean, max or min of what all processes have, in each of them."""

def and_(a: Tensor, b: Tensor, /) -> Any:
    """a and b, bit by bit"""

def arg_reduce(x: Tensor, /, *, kind: str, axis: int, last: bool = ...) -> Any:
    """index of the extreme; the first (or last) of ties"""

def arg_reduce_window(
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
    """where the first extreme of each window stands: its row-major position in x"""

def asin(x: Tensor, /) -> Any:
    """the angle in [−π/2, π/2] whose sine is x"""

def asinh(x: Tensor, /) -> Any:
    """log(x + √(x² + 1))"""

def atan(x: Tensor, /) -> Any:
    """the angle in (−π/2, π/2) whose tangent is x"""

def atan2(a: Tensor, b: Tensor, /) -> Any:
    """the angle of the point (b, a) in radians, in [−π, π]"""

def atanh(x: Tensor, /) -> Any:
    """½·log((1 + x) / (1 − x))"""

def attend(
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
    """attention in one kernel: exact softmax over whole rows, grouped heads, a mask that is
    added"""

def attention(
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

def avg_pool(
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
    """The mean of each window: over its real elements, or over all its places if padding counts."""

def barrier(x: Tensor, /) -> Any:
    """x itself; what is computed of it stays apart from what is computed of x, so that it is
    computed again"""

def batch_norm(
    x: Tensor,
    scale: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    /,
    *,
    epsilon: float = ...,
    axis: int = ...,
) -> Any:
    """Inference: (x − mean) / √(var + ε)·scale + bias with given statistics along an axis."""

def batch_norm_training(
    x: Tensor,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    /,
    *,
    epsilon: float = ...,
    axis: int = ...,
) -> Any:
    """Training: normalised over all axes but one → (y, mean, biased variance of the batch)."""

def bce_loss(
    x: Tensor,
    y: Tensor,
    weight: Tensor | None = None,
    /,
    *,
    from_logits: bool = ...,
    reduction: str = ...,
) -> Any:
    """−(y·log p + (1 − y)·log(1 − p)); p = x, or sigmoid(x) from logits. Logs stop at −100."""

def bernoulli(p: Tensor, state: Tensor, /) -> Any:
    """True with probability p, elementwise → (bool, next state)."""

def binary_cross_entropy(x: Tensor, y: Tensor, /) -> Any:
    """−(y·log x + (1 − y)·log(1 − x)) for each probability x; logarithms stop at −100."""

def bitcast(x: Tensor, /, *, dtype: DType) -> Any:
    """the same bits, another type"""

def broadcast(x: Tensor, /, *, shape: tuple[Dim, ...]) -> Any:
    """NumPy's broadcast_to"""

def broadcast_first(x: Tensor, /) -> Any:
    """What the first process has, in each of them."""

def cast(x: Tensor, /, *, dtype: DType, saturate: bool = ...) -> Any:
    """to another element type; float to integer truncates and clamps, NaN gives 0"""

def ceil(x: Tensor, /) -> Any:
    """⌈x⌉: the least whole number that is at least x"""

def celu(x: Tensor, /, *, alpha: float = ...) -> Any:
    """x where positive, else α·(e^(x/α) − 1)."""

def checkpoint(x: Tensor, /, *, region: int, edge: str) -> Any:
    """x itself where it enters or leaves a region that the backward pass is to compute again
    (torch.utils.checkpoint)"""

def cholesky(a: Tensor, /) -> Any:
    """L with L·Lᵀ = a and zeros above its diagonal; reads the lower half of a."""

def clamp(x: Tensor, lo: Tensor, hi: Tensor, /) -> Any:
    """min(max(x, lo), hi); a bound may be left out"""

def collective_begin(x: Tensor, /, *, kind: str, size: int = ..., now: bool = ...) -> Any:
    """starts to bring flat arrays of all processes together: sum, max, min, gather, scatter (of the
    sum) or broadcast (of the first one's); done at collective_end, or `now` where no work stands
    between"""

def collective_end(x: Tensor, y: Tensor, ticket: Tensor, /) -> Any:
    """waits for what collective_begin started; takes its operand too, which is read until then"""

def concat(*xs: Tensor, axis: int) -> Any:
    """the operands one behind the other along an axis"""

def cond(pred: Tensor, *operands: Tensor, then: Graph, orelse: Graph) -> Any:
    """what `then` gives where the predicate holds, else what `orelse` gives"""

def constant(*, data: Weight, param: bool = ...) -> Any:
    """an array of the model; `param` marks one that training may change"""

def conv(
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
    dtype: DType | None = ...,
) -> Any:
    """n-d correlation with strides, padding, both dilations, groups"""

def conv_bf16(
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
    """2-d convolution of bfloat16, channels last, summed in float32"""

def conv_int(
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
    """2-d convolution of small integers, channels last, its padding in the input"""

def conv_packed(
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
    """2-d convolution, channels last, of an input whose padding is in it"""

def cos(x: Tensor, /) -> Any:
    """the cosine of x in radians"""

def cosh(x: Tensor, /) -> Any:
    """(eˣ + e⁻ˣ) / 2"""

def cross_entropy(
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

def cumulative(
    x: Tensor,
    /,
    *,
    kind: str,
    axis: int,
    reverse: bool = ...,
    exclusive: bool = ...,
) -> Any:
    """running sum, prod, max or min along an axis"""

def decode_image(x: Tensor, /, *, shape: tuple[Dim, ...], pixels: str = ...) -> Any:
    """the pixels u8[height, width, channels] of an encoded BMP, JPEG, JPEG 2000, TIFF, PNG, WebP or
    portable map; `shape` is what image_shape says of it"""

def depthwise(
    x: Tensor,
    w: Tensor,
    /,
    *,
    strides: tuple[int, int],
    dilation: tuple[int, int] = ...,
    plan: Plan | None = ...,
) -> Any:
    """one filter a channel, channels last, of an input whose padding is in it; weights of more
    channels than it has repeat, for neighbours that are one pixel"""

def depthwise_int(
    x: Tensor,
    w: Tensor,
    /,
    *,
    window: tuple[int, int],
    strides: tuple[int, int],
    dilation: tuple[int, int] = ...,
    plan: Plan | None = ...,
) -> Any:
    """one filter of integers a channel, channels last, its padding in the input"""

def detach(x: Tensor, /) -> Any:
    """x itself; no gradient flows through it"""

def digamma(x: Tensor, /) -> Any:
    """Γ′(x) / Γ(x) (DLMF 5.2.2)"""

def dim(*, of: Dim, dtype: DType) -> Any:
    """the value of a dimension, symbolic ones included, as a scalar"""

def div(a: Tensor, b: Tensor, /) -> Any:
    """a / b; of integers the quotient cut towards 0, and 0 where b = 0"""

def dropout(x: Tensor, state: Tensor, /, *, p: float = ...) -> Any:
    """x / (1 − p) where kept, 0 with probability p → (y, the mask of what is kept, next state)."""

def dynamic_slice(x: Tensor, *start: Tensor, sizes: tuple[Dim, ...]) -> Any:
    """a window of fixed size at a start read from data, clamped to stay inside"""

def dynamic_update_slice(x: Tensor, update: Tensor, *start: Tensor) -> Any:
    """x with a window replaced, at a start read from data"""

def eigh(a: Tensor, /) -> Any:
    """(w, V) with a·V = V·diag(w), w ascending; reads the lower half of a."""

def elu(x: Tensor, /, *, alpha: float = ...) -> Any:
    """x where positive, else α·(eˣ − 1); the exponential never sees a positive x."""

def embedding(table: Tensor, ids: Tensor, /) -> Any:
    """Rows of the table: y[i…] = table[ids[i…]]; ids are not negative."""

def eq(a: Tensor, b: Tensor, /) -> Any:
    """whether a equals b"""

def erf(x: Tensor, /) -> Any:
    """the error function 2/√π·∫₀ˣ exp(−t²) dt (DLMF 7.2.1)"""

def erf_inv(x: Tensor, /) -> Any:
    """the y with erf(y) = x; ±∞ at ±1"""

def exp(x: Tensor, /) -> Any:
    """eˣ"""

def expm1(x: Tensor, /) -> Any:
    """eˣ − 1, without loss of digits near 0"""

def extreme_tap(
    x: Tensor,
    /,
    *,
    kind: str,
    window: tuple[int, ...],
    strides: tuple[int, ...] | None = ...,
    padding: tuple[tuple[Dim, Dim], ...] | None = ...,
) -> Any:
    """the number, within its window, of the first extreme; padding is the neutral element"""

def floor(x: Tensor, /) -> Any:
    """⌊x⌋: the greatest whole number that is at most x"""

def fourier(
    real: Tensor,
    imag: Tensor | None = None,
    /,
    *,
    inverse: bool = ...,
    half: bool = ...,
) -> Any:
    """Σₜ x[t]·exp(∓2πi·k·t/n) for each k, or for the first ⌊n/2⌋ + 1 of them, + with `inverse`"""

def fourier_real(real: Tensor, imag: Tensor, /, *, size: int) -> Any:
    """The real line of `size` whose spectrum has this first half, times `size`; the imaginary"""

def gather(x: Tensor, indices: Tensor, /, *, axes: tuple[int, ...], batch: int = ...) -> Any:
    """y[b, i, rest] = x[b, indices[b, i, :] on `axes`, rest]; the last dim of the indices runs over
    the axes, the first `batch` dims are shared"""

def ge(a: Tensor, b: Tensor, /) -> Any:
    """whether a is at least b"""

def gelu(x: Tensor, /, *, approximate: str = ...) -> Any:
    """x·Φ(x), by erf or by its tanh approximation (Hendrycks and Gimpel 2016)."""

def group_norm(
    x: Tensor,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    /,
    *,
    groups: int,
    epsilon: float = ...,
) -> Any:
    """x [N, C, …] normalised over each of `groups` runs of channels and all of space."""

def gru(
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

def gt(a: Tensor, b: Tensor, /) -> Any:
    """whether a is greater than b"""

def hard_sigmoid(x: Tensor, /, *, alpha: float = ..., beta: float = ...) -> Any:
    """min(max(α·x + β, 0), 1); the gradient is 0 at both bounds."""

def hard_swish(x: Tensor, /) -> Any:
    """x·min(max(x/6 + ½, 0), 1); the gradient is 0 at −3 and 1 at 3."""

def hardtanh(x: Tensor, /, *, lo: float = ..., hi: float = ...) -> Any:
    """min(max(x, lo), hi); the gradient is 0 at both bounds, where clamp's is 1."""

def householder(a: Tensor, /) -> Any:
    """Q·R = a → (R on and above the diagonal, below it the vectors v of the reflections"""

def huber_loss(x: Tensor, y: Tensor, /, *, delta: float = ..., reduction: str = ...) -> Any:
    """½·d² where |d| ≤ δ, else δ·(|d| − ½·δ), with d = x − y."""

def i0e(x: Tensor, /) -> Any:
    """e^−|x|·I₀(x), I₀ being the modified Bessel function (DLMF 10.25)"""

def i1e(x: Tensor, /) -> Any:
    """e^−|x|·I₁(x), I₁ being the modified Bessel function (DLMF 10.25)"""

def igamma(a: Tensor, b: Tensor, /) -> Any:
    """P(a, b) = ∫₀ᵇ tᵃ⁻¹·e⁻ᵗ dt / Γ(a) (DLMF 8.2.4)"""

def igammac(a: Tensor, b: Tensor, /) -> Any:
    """Q(a, b) = 1 − P(a, b) (DLMF 8.2.4)"""

def image_shape(x: Tensor, /, *, pixels: str = ...) -> Any:
    """height, width and channels of an encoded picture; 0 by 0 for what is none"""

def instance_norm(
    x: Tensor,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    /,
    *,
    epsilon: float = ...,
) -> Any:
    """x [N, C, …] normalised over space, each channel of each sample by itself."""

def iota(*, shape: tuple[Dim, ...], axis: int, dtype: DType) -> Any:
    """0, 1, 2, … along an axis"""

def is_finite(x: Tensor, /) -> Any:
    """whether x is neither NaN nor infinite"""

def is_inf(x: Tensor, /) -> Any:
    """whether x is +∞ or −∞"""

def is_nan(x: Tensor, /) -> Any:
    """whether x is NaN"""

def kl_div(x: Tensor, y: Tensor, /, *, log_target: bool = ..., reduction: str = ...) -> Any:
    """y·(log y − x) with x = log q, and y or log y (`log_target`) as target; 0·log 0 is 0."""

def layer_norm(
    x: Tensor,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    /,
    *,
    axes: tuple[int, ...],
    epsilon: float = ...,
) -> Any:
    """(x − mean) / √(var + ε)·scale + bias over axes; scale and bias broadcast to x."""

def le(a: Tensor, b: Tensor, /) -> Any:
    """whether a is at most b"""

def leaky_relu(x: Tensor, /, *, slope: float = ...) -> Any:
    """x where positive, else slope·x."""

def lgamma(x: Tensor, /) -> Any:
    """log|Γ(x)| (DLMF 5.2.1)"""

def linear(x: Tensor, w: Tensor, bias: Tensor | None = None, /) -> Any:
    """x·wᵀ + bias with w [out, in]."""

def linear_nbits(
    x: Tensor,
    packed: Tensor,
    scales: Tensor,
    zeros: Tensor | None = None,
    /,
    *,
    bits: int,
    block: int,
) -> Any:
    """x·wᵀ with w[n, k] = (q − zero)·scale: q of `bits` bits, the lowest of a byte first, a
    scale"""

def log(x: Tensor, /) -> Any:
    """the natural logarithm of x"""

def log1p(x: Tensor, /) -> Any:
    """log(1 + x), without loss of digits near 0"""

def log_sigmoid(x: Tensor, /) -> Any:
    """log(sigmoid(x)), stable on both sides."""

def log_softmax(x: Tensor, /, *, axis: int) -> Any:
    """x − max − log Σ exp(x − max) along an axis."""

def logsumexp(x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
    """log Σ exp(x) over axes, kept as 1; shifted by the maximum, infinities included."""

def lp_pool(
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

def lrn(
    x: Tensor,
    /,
    *,
    size: int,
    alpha: float = ...,
    beta: float = ...,
    bias: float = ...,
) -> Any:
    """x / (bias + α/size·Σ x²)^β over `size` channels (axis 1), ⌊(size − 1)/2⌋ of them before."""

def lstm(
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
    """Gates i, o, f, c: c' = f·c + i·g, h' = o·tanh(c') → (y, h, c); peephole weights are i, o,
    f."""

def lt(a: Tensor, b: Tensor, /) -> Any:
    """whether a is less than b"""

def lu(a: Tensor, /) -> Any:
    """P·L·U = a → (L below and U on and above the diagonal, the row that each row was swapped"""

def lu_solve(factors: Tensor, swaps: Tensor, b: Tensor, /) -> Any:
    """x with a·x = b, from `lu(a)`."""

def matmul(
    a: Tensor,
    b: Tensor,
    /,
    *,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    dtype: DType | None = ...,
) -> Any:
    """batched matrix product; leading dims broadcast; `dtype` is the accumulator's"""

def matmul_bf16(a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
    """a product of bfloat16 with a packed right-hand side, summed in float32"""

def matmul_blas(a: Tensor, b: Tensor, /, *, plan: Plan | None = ...) -> Any:
    """a product by a CBLAS library"""

def matmul_int(a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
    """a product of small integers with a packed right-hand side"""

def matmul_packed(a: Tensor, b: Tensor, /, *, n: int, plan: Plan | None = ...) -> Any:
    """a product with a packed right-hand side"""

def max(a: Tensor, b: Tensor, /) -> Any:
    """the greater of a and b; NaN if one is NaN"""

def max_pool(
    x: Tensor,
    /,
    *,
    window: tuple[int, ...],
    strides: tuple[int, ...] | None = ...,
    padding: tuple[tuple[Dim, Dim], ...] | None = ...,
    dilation: tuple[int, ...] | None = ...,
    channels_last: bool = ...,
) -> Any:
    """The greatest element of each window; NaN wins."""

def min(a: Tensor, b: Tensor, /) -> Any:
    """the lesser of a and b; NaN if one is NaN"""

def mish(x: Tensor, /) -> Any:
    """x·tanh(log(1 + eˣ))."""

def mod(a: Tensor, b: Tensor, /) -> Any:
    """a − b·⌊a / b⌋, with the sign of b, as % in Python; of integers 0 where b = 0"""

def mse_loss(x: Tensor, y: Tensor, /, *, reduction: str = ...) -> Any:
    """(x − y)²"""

def mul(a: Tensor, b: Tensor, /) -> Any:
    """a·b"""

def ne(a: Tensor, b: Tensor, /) -> Any:
    """whether a differs from b"""

def neg(x: Tensor, /) -> Any:
    """−x"""

def next_after(a: Tensor, b: Tensor, /) -> Any:
    """the float beside a on the way to b (IEEE 754)"""

def nll_loss(
    x: Tensor,
    labels: Tensor,
    weight: Tensor | None = None,
    /,
    *,
    axis: int = ...,
    reduction: str = ...,
    ignore_index: int = ...,
) -> Any:
    """−x[label]·weight[label] with x = log p along an axis; the mean is over the weights."""

def nonzero(x: Tensor, /, *, size: Dim) -> Any:
    """the coordinates of the elements that are not zero, i64[size, rank], row-major"""

def norm(x: Tensor, /, *, axes: tuple[int, ...], order: float = ..., epsilon: float = ...) -> Any:
    """(Σ |x|ᵖ)^(1/p) over axes, kept as 1; p may be ±∞, and 0 counts. Its gradient at 0 is 0."""

def normal(
    state: Tensor,
    /,
    *,
    shape: tuple[Dim, ...],
    dtype: DType = ...,
    mean: float = ...,
    std: float = ...,
) -> Any:
    """Normal by Box and Muller → (values, next state)."""

def not_(x: Tensor, /) -> Any:
    """not x, bit by bit"""

def or_(a: Tensor, b: Tensor, /) -> Any:
    """a or b, bit by bit"""

def pack(b: Tensor, /, *, nr: int, transpose: bool = ...) -> Any:
    """the right-hand side of a product in panels of nr columns"""

def pack_conv(w: Tensor, /, *, nr: int, groups: int = ...) -> Any:
    """convolution weights in panels of nr output channels"""

def pack_conv_pairs(w: Tensor, /, *, nr: int, groups: int = ..., whole: bool = ...) -> Any:
    """convolution weights of bfloat16 in panels of nr output channels, by pairs"""

def pack_int(b: Tensor, /, *, nr: int, transpose: bool = ...) -> Any:
    """the right-hand side of a product of integers in panels of nr columns"""

def pack_int_conv(w: Tensor, /, *, nr: int, groups: int = ..., joined: bool = ...) -> Any:
    """filters of integers in panels of nr output channels"""

def pack_int_depthwise(w: Tensor, /, *, high: int, stride: int) -> Any:
    """a filter a channel, four rows of it beside each other, for `high` output rows"""

def pack_int_winograd(w: Tensor, /, *, tile: int, nr: int) -> Any:
    """3×3 filters of integers, transformed without fractions, in panels"""

def pack_pairs(b: Tensor, /, *, nr: int, transpose: bool = ...) -> Any:
    """the right-hand side of a bfloat16 product in panels of nr columns, by pairs"""

def pack_winograd(w: Tensor, /, *, tile: int, nr: int) -> Any:
    """3×3 weights transformed to U = G·g·Gᵀ and packed"""

def pack_winograd_line(w: Tensor, /, *, tile: int, nr: int, upright: bool) -> Any:
    """weights whose threes of taps along one axis are transformed to G·g, packed"""

def pad(
    x: Tensor,
    /,
    *,
    lo: tuple[Dim, ...],
    hi: tuple[Dim, ...],
    interior: tuple[int, ...] | None = ...,
    value: float = ...,
) -> Any:
    """value before, after and between the elements; negative edges crop"""

def polygamma(a: Tensor, b: Tensor, /) -> Any:
    """the a-th derivative of digamma at b, a a whole number ≥ 0 (DLMF 5.15)"""

def pooled(
    x: Tensor,
    /,
    *,
    kind: str,
    window: tuple[int, int],
    strides: tuple[int, int],
    dilation: tuple[int, int] = ...,
    plan: Plan | None = ...,
) -> Any:
    """windows of images, channels last, whose padding is in them"""

def pow(a: Tensor, b: Tensor, /) -> Any:
    """aᵇ; of integers cut towards 0 where b is negative"""

def prelu(x: Tensor, slope: Tensor, /) -> Any:
    """x where positive, else slope·x; the slope broadcasts as NumPy does."""

def process_rank() -> Any:
    """the number of this process among all, from 0 on"""

def recurrence(
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

def recurrence_grad(
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
    """Of a recurrence's results y and kept, with cotangents gy, gh and gc: the gradients of p
    and"""

def reduce_and(x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
    """and over axes, kept as 1"""

def reduce_max(x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
    """max over axes, kept as 1"""

def reduce_mean(x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
    """Σ x / n over axes, kept as 1; integers truncate."""

def reduce_min(x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
    """min over axes, kept as 1"""

def reduce_or(x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
    """or over axes, kept as 1"""

def reduce_prod(x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
    """prod over axes, kept as 1"""

def reduce_scatter(x: Tensor, /, *, axis: int, size: int) -> Any:
    """The sum over `size` processes, of which each keeps its part along an axis."""

def reduce_sum(x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
    """sum over axes, kept as 1"""

def reduce_var(x: Tensor, /, *, axes: tuple[int, ...], correction: int = ...) -> Any:
    """Σ (x − mean)² / (n − correction) over axes, in two passes."""

def reduce_window(
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
    """pooling: sum, prod, max or min over a sliding window on every axis; padding counts as the
    neutral element"""

def reflect(packed: Tensor, tau: Tensor, x: Tensor, /, *, transpose: bool = ...) -> Any:
    """Q·x, or Qᵀ·x, with Q as `householder` gives it."""

def regex_match(x: Tensor, /, *, pattern: str) -> Any:
    """whether the whole string matches the pattern, in Python's syntax"""

def relu(x: Tensor, /) -> Any:
    """max(x, 0) as a select, so that its gradient at 0 is 0 and NaN stays NaN."""

def rem(a: Tensor, b: Tensor, /) -> Any:
    """a − b·trunc(a / b), with the sign of a, as fmod in C; of integers 0 where b = 0"""

def reshape(x: Tensor, /, *, shape: tuple[Dim, ...]) -> Any:
    """the same elements in row-major order under another shape"""

def resize(
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

def resize_by(
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
    """`resize` by scales f64[rank] and a region f64[2·rank] that are computed; `sizes` say what"""

def reverse(x: Tensor, /, *, axes: tuple[int, ...]) -> Any:
    """back to front along axes"""

def rms_norm(
    x: Tensor,
    scale: Tensor | None = None,
    /,
    *,
    axes: tuple[int, ...],
    epsilon: float = ...,
) -> Any:
    """x / √(mean(x²) + ε)·scale over axes."""

def rng_bits(state: Tensor, /, *, shape: tuple[Dim, ...]) -> Any:
    """Independent uniform u32 → (bits, next state)."""

def rnn(
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

def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, /, *, interleaved: bool = ...) -> Any:
    """Rotates pairs of the last axis: (a, b) → (a·cos − b·sin, a·sin + b·cos)."""

def round(x: Tensor, /) -> Any:
    """the nearest whole number; of two equally near ones the even one"""

def rsqrt(x: Tensor, /) -> Any:
    """1 / √x"""

def scan(
    *operands: Tensor,
    body: Graph,
    carries: int,
    xs: int,
    length: Dim,
    reverse: bool = ...,
) -> Any:
    """`body` along the first axis: carries, then a row of each of the `xs` operands behind them,
    then the rest; gives the last carries and the stacked other results"""

def scatter(
    x: Tensor,
    indices: Tensor,
    updates: Tensor,
    /,
    *,
    axes: tuple[int, ...],
    batch: int = ...,
    kind: str = ...,
) -> Any:
    """x with updates set, added, … where gather would read; later duplicates win"""

def select(cond: Tensor, a: Tensor, b: Tensor, /) -> Any:
    """a where cond, else b"""

def selu(x: Tensor, /, *, alpha: float = ..., gamma: float = ...) -> Any:
    """γ·elu(x, α) (Klambauer et al. 2017)."""

def shift_left(a: Tensor, b: Tensor, /) -> Any:
    """a·2ᵇ: the bits of a moved up by b places; 0 from the width of the type on"""

def shift_right(a: Tensor, b: Tensor, /) -> Any:
    """⌊a / 2ᵇ⌋: the bits of a moved down by b places; its sign is repeated"""

def sigmoid(x: Tensor, /) -> Any:
    """1 / (1 + e⁻ˣ)"""

def sign(x: Tensor, /) -> Any:
    """−1, 0 or 1, by the sign of x"""

def silu(x: Tensor, /) -> Any:
    """x·sigmoid(x), also called swish."""

def sin(x: Tensor, /) -> Any:
    """the sine of x in radians"""

def sinh(x: Tensor, /) -> Any:
    """(eˣ − e⁻ˣ) / 2"""

def size(n: Tensor, /, *, size: Dim, most: Dim | None = ..., checked: bool = ...) -> Any:
    """n itself; from here on the symbol `size` stands for its value, which is `most` or less; a
    `checked` one is there for its bounds, and stays if nothing uses it"""

def slice(
    x: Tensor,
    /,
    *,
    start: tuple[Dim, ...],
    limit: tuple[Dim, ...],
    strides: tuple[int, ...],
) -> Any:
    """x[start:limit:stride] on every axis; strides are positive, `reverse` flips"""

def softmax(x: Tensor, /, *, axis: int) -> Any:
    """exp(x − max) / Σ exp(x − max) along an axis."""

def softplus(x: Tensor, /, *, beta: float = ..., threshold: float = ...) -> Any:
    """log(1 + e^(β·x)) / β, and x itself where β·x > threshold; never overflows."""

def softsign(x: Tensor, /) -> Any:
    """x / (1 + |x|)."""

def sort(x: Tensor, /, *, axis: int, descending: bool = ...) -> Any:
    """values and indices along an axis, stable"""

def sqrt(x: Tensor, /) -> Any:
    """√x; its gradient at 0 is 0"""

def stack(*xs: Tensor, axis: int) -> Any:
    """The operands side by side along a new axis."""

def string_concat(a: Tensor, b: Tensor, /) -> Any:
    """each string of a with that of b behind it"""

def string_normalize(
    x: Tensor,
    /,
    *,
    size: Dim,
    case: str = ...,
    stopwords: tuple[str, ...] = ...,
    case_sensitive: bool = ...,
) -> Any:
    """the strings that are no stop words, in upper or lower case; one empty string where none is
    left"""

def string_split(x: Tensor, /, *, size: Dim, delimiter: str = ..., most: int | None = ...) -> Any:
    """the pieces between delimiters (runs of white space where it is empty), at most `most` cuts,
    filled up with empty strings to the `size` of the longest row; and how many pieces there are"""

def string_tokens(
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
    """the matches of the pattern `tokens`, or what lies between separators, of `least` letters or
    more, filled up to the `size` of the longest row; `marks` puts \x02 before and \x03 behind each
    row"""

def sub(a: Tensor, b: Tensor, /) -> Any:
    """a − b"""

def svd(a: Tensor, /, *, full: bool = ...) -> Any:
    """(U, s, Vᵀ) with U·diag(s)·Vᵀ = a, s descending; `full` completes U and V to square ones."""

def swapped(swaps: Tensor, /, *, size: Dim) -> Any:
    """0, 1, …, with place j swapped with place swaps[j], one after the other."""

def tan(x: Tensor, /) -> Any:
    """the tangent of x in radians"""

def tanh(x: Tensor, /) -> Any:
    """(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)"""

def thresholded_relu(x: Tensor, /, *, alpha: float = ...) -> Any:
    """x where x > α, else 0; NaN gives 0."""

def top_k(x: Tensor, /, *, k: Dim, axis: int, largest: bool = ...) -> Any:
    """the k greatest (or least) along an axis in order, with their indices; of equal ones the
    first"""

def transpose(x: Tensor, /, *, perm: tuple[int, ...]) -> Any:
    """y[i] = x[i permuted]: axis k of y is axis perm[k] of x"""

def trees(
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
    """The weights of the leaves that each row of x comes to, over all trees: [N, targets]."""

def triangular_solve(a: Tensor, b: Tensor, /, *, lower: bool = ..., unit: bool = ...) -> Any:
    """x with a·x = b, of a only one half being read; `unit` takes its diagonal for ones."""

def trunc(x: Tensor, /) -> Any:
    """the whole part of x, cut towards 0"""

def uniform(
    state: Tensor,
    /,
    *,
    shape: tuple[Dim, ...],
    dtype: DType = ...,
    low: float = ...,
    high: float = ...,
) -> Any:
    """Uniform on [low, high) → (values, next state)."""

def unknown_gradient(x: Tensor, /, *, reason: str) -> Any:
    """x itself, whose author gave it a gradient that capture could not see: differentiating through
    it is refused"""

def unpool(
    g: Tensor,
    taps: Tensor,
    /,
    *,
    shape: tuple[Dim, ...],
    window: tuple[int, ...],
    strides: tuple[int, ...] | None = ...,
    padding: tuple[tuple[Dim, Dim], ...] | None = ...,
) -> Any:
    """each g at the element of its window that `taps` numbers; sums where windows overlap, zeros
    elsewhere: the gradient of a maximum over windows"""

def while_(
    *operands: Tensor,
    cond: Graph,
    body: Graph,
    carries: int,
    bound: int | None = ...,
) -> Any:
    """the first `carries` operands, by `body` until `cond` fails, or for `bound` turns; the other
    operands stay"""

def winograd(
    x: Tensor,
    w: Tensor,
    /,
    *,
    channels: int,
    tile: int,
    plan: Plan | None = ...,
    groups: int = ...,
) -> Any:
    """3×3 convolution of stride 1, channels last, by Winograd's short sums"""

def winograd_int(
    x: Tensor,
    w: Tensor,
    /,
    *,
    channels: int,
    tile: int,
    plan: Plan | None = ...,
) -> Any:
    """3×3 convolution of stride 1 of small integers by Winograd's short sums: exact where they are
    below 2²⁹ with tiles of 2, 2²⁵ with tiles of 4"""

def winograd_line(
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
    """convolution of stride 1, channels last, by Winograd's short sums along one axis: rows, or
    columns where it is upright"""

def xor(a: Tensor, b: Tensor, /) -> Any:
    """either a or b, bit by bit"""
