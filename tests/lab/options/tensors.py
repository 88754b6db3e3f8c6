"""Rows of functions of tensors: sums, order, products, moves, writes, factors, spectra."""

from __future__ import annotations

from tests.lab.options.rows import T, row

BOTH = [False, True]
X = "3,4,5"
INF = float("inf")

# ---- element by element ------------------------------------------------------------------------

row("torch.add", X, "4,5", alpha=[..., 2, -0.5])
row("torch.sub", X, "4,5", alpha=[..., 2, -0.5])
row("torch.rsub", X, "4,5", alpha=[..., 2])
row("torch.div", X, "p:4,5", rounding_mode=[None, "floor", "trunc"])
row("torch.div", "i9:3,4", "i9:4", rounding_mode=[None])
row("lambda x, y, **k: torch.div(x - 9, y + 1, **k)", "i20:3,4", "i9:4",
    rounding_mode=["floor", "trunc"])
row("torch.clamp", X, min=[..., -0.5, T("4,1")], max=[..., 0.5, T("5")])
row("torch.round", X, decimals=[..., 0, 1, 3, -1])
row("torch.nan_to_num", X, nan=[..., 2.0], posinf=[..., 3.0], neginf=[..., -3.0])
row("lambda x, **k: torch.nan_to_num(1 / (x - x.flatten()[3]).sign(), **k)", X, nan=[..., 2.0],
    posinf=[..., 3.0], neginf=[..., -3.0])
row("torch.logit", "u:3,4", eps=[..., 0.0, 0.2])
row("torch.lerp", X, X, weight=[0.3, 0.7, T("4,5")])
row("torch.addcmul", X, X, "4,5", value=[..., 0.5, -2])
row("torch.addcdiv", X, X, "p:4,5", value=[..., 0.5, -2])
row("torch.isclose", X, X, rtol=[..., 0.5], atol=[..., 1.0], equal_nan=BOTH)
row("torch.isin", "i9:3,4", "i9:5", assume_unique=[False], invert=BOTH)
row("torch.heaviside", X, values=[T("5")])
row("torch.pow", "p:3,4", exponent=[2, 0.5, -1, 3, T("4")])
row("torch.polygamma", 2, "p:3,4")
row("torch.mvlgamma", "p:3,4", p=[1])
row("torch.special.multigammaln", "p:3,4", p=[1])
row("torch.where", "b:3,4,5", X, other=[T("4,5"), 2.5])
row("lambda x, b, **k: torch.bucketize(x, b.sort().values, **k)", X, "5", right=BOTH,
    out_int32=BOTH)
row("lambda b, x, **k: torch.searchsorted(b.sort().values, x, **k)", "3,6", "3,4",
    right=BOTH, out_int32=BOTH)
row("lambda b, x, **k: torch.searchsorted(b.sort().values, x, **k)", "6", X, side=["left", "right"])

# ---- reductions --------------------------------------------------------------------------------

DIM = [0, -1, (0, 2)]
for _name in ("sum", "mean", "nansum", "nanmean"):
    row(f"torch.{_name}", X, dim=[None, *DIM], keepdim=BOTH, dtype=[..., "float64"])
for _name in ("amax", "amin"):
    row(f"torch.{_name}", X, dim=[*DIM, ()], keepdim=BOTH)
row("torch.prod", X, dim=[0, -1], keepdim=BOTH, dtype=[..., "float64"])
for _name in ("var", "std", "var_mean", "std_mean"):
    row(f"torch.{_name}", X, dim=[None, *DIM], correction=[..., 0, 1, 2], keepdim=BOTH)
for _name in ("argmax", "argmin"):
    row(f"torch.{_name}", X, dim=[None, 0, -1], keepdim=BOTH)
for _name in ("max", "min", "median", "nanmedian"):
    row(f"torch.{_name}", X, dim=[0, -1], keepdim=BOTH)
for _name in ("any", "all"):
    row(f"torch.{_name}", "b:3,4,5", dim=[*DIM], keepdim=BOTH)
row("torch.count_nonzero", "i3:3,4,5", dim=[None, *DIM])
row("torch.aminmax", X, dim=[..., 0, -1], keepdim=BOTH)
row("torch.logsumexp", X, dim=DIM, keepdim=BOTH)
row("torch.quantile", X, q=[0.0, 0.3, 1.0, T("u:3")], dim=[None, 1], keepdim=BOTH,
    interpolation=["linear", "lower", "higher", "midpoint", "nearest"])
row("torch.nanquantile", X, q=[0.3], dim=[None, 1], interpolation=["linear", "nearest"])
row("torch.norm", X, p=[..., "fro", 0, 1, 3, 0.5, INF, -INF], dim=[..., 1, (0, 2)], keepdim=BOTH)
row("torch.linalg.vector_norm", X, ord=[..., 0, 1, 2, 3.5, -1, INF, -INF],
    dim=[None, 1, (0, 2)], keepdim=BOTH, dtype=[..., "float64"])
row("torch.linalg.matrix_norm", X, ord=["fro", "nuc", 1, -1, 2, -2, INF, -INF],
    dim=[(-2, -1), (0, 2)], keepdim=BOTH)
row("torch.linalg.norm", "4,5", ord=[None, "fro", "nuc", 1, -1, 2, -2, INF, -INF], keepdim=BOTH)
row("torch.renorm", X, p=[1, 2, 0.5], dim=[0, 2], maxnorm=[0.7])
for _name in ("cumsum", "cumprod"):
    row(f"torch.{_name}", X, dim=[0, -1], dtype=[..., "float64"])
for _name in ("cummax", "cummin", "logcumsumexp"):
    row(f"torch.{_name}", X, dim=[0, -1])
row("torch.diff", X, n=[1, 2, 0], dim=[0, -1], prepend=[..., T("3,4,5")], append=[..., T("3,4,5")])
row("torch.trapezoid", X, dx=[..., 0.3], dim=[0, -1])
row("torch.trapezoid", X, x=[T("5")])
row("torch.cumulative_trapezoid", X, dx=[..., 0.3], dim=[0, -1])
row("torch.gradient", X, spacing=[..., 0.5], dim=[..., 1, (0, 2)], edge_order=[1, 2])
row("torch.cov", "3,6", correction=[0, 1, 2], fweights=[..., T("i4:6")], aweights=[..., T("p:6")])
row("torch.corrcoef", "3,6")
row("torch.bincount", "i6:9", weights=[..., T("9")], minlength=[..., 8])
row("torch.histc", X, bins=[4, 7], min=[-1.0], max=[2.0])

# ---- order -------------------------------------------------------------------------------------

row("torch.sort", X, dim=[0, -1], descending=BOTH, stable=BOTH)
row("torch.argsort", X, dim=[0, -1], descending=BOTH, stable=[..., True])
row("torch.topk", X, k=[1, 3], dim=[0, -1], largest=BOTH, sorted=[True])
row("torch.kthvalue", X, k=[1, 3], dim=[0, -1], keepdim=BOTH)
row("torch.mode", "i3:3,7", dim=[0, -1], keepdim=BOTH)
row("torch.unique_consecutive", "i2:9", return_inverse=BOTH, return_counts=BOTH)

# ---- products ----------------------------------------------------------------------------------

row("torch.addmm", "5", "3,4", "4,5", beta=[..., 0, 0.5], alpha=[..., 2])
row("torch.addmv", "3", "3,4", "4", beta=[..., 0, 0.5], alpha=[..., 2])
row("torch.addr", "3,4", "3", "4", beta=[..., 0, 0.5], alpha=[..., 2])
row("torch.baddbmm", "2,1,5", "2,3,4", "2,4,5", beta=[..., 0, 0.5], alpha=[..., 2])
row("torch.addbmm", "3,5", "2,3,4", "2,4,5", beta=[..., 0, 0.5], alpha=[..., 2])
row("torch.tensordot", X, "5,4,3", dims=[0, 1, ([1], [1]), ([2, 0], [0, 2])])
row("torch.cross", "3,4,3", "3,4,3", dim=[0, -1])
row("torch.linalg.cross", "3,4,3", "3,1,3", dim=[0, -1])
row("torch.vander", "5", N=[..., 3, 7], increasing=BOTH)
row("torch.linalg.vander", "5", N=[..., 3])
row("torch.linalg.matrix_power", "2,3,3", n=[0, 1, 3, -2])
row("torch.linalg.multi_dot", ["3,4", "4,5", "5,2"])
row("torch.linalg.vecdot", X, X, dim=[0, -1])

# ---- moves -------------------------------------------------------------------------------------

for _name in ("tril", "triu"):
    row(f"torch.{_name}", X, diagonal=[..., 1, -2, 9])
row("torch.diag", "4,5", diagonal=[..., 1, -2])
row("torch.diag", "4", diagonal=[..., 1, -2])
row("torch.diagonal", X, offset=[..., 1, -2], dim1=[0, -1], dim2=[1, -2])
row("torch.diag_embed", "3,4", offset=[..., 1, -2], dim1=[..., 0], dim2=[..., 2])
row("torch.diagflat", "3,2", offset=[..., 1, -2])
row("torch.flip", X, dims=[(0,), (0, -1)])
row("torch.roll", X, shifts=[1, -2, 7], dims=[..., 0, -1])
row("torch.roll", X, shifts=[(1, -2)], dims=[(0, 2), (1, 1)])
row("torch.rot90", X, k=[..., 0, 2, 3, -1], dims=[(0, 1), (2, 0)])
row("torch.tile", X, dims=[(2,), (2, 1, 3), (2, 1, 1, 2)])
row("torch.repeat_interleave", X, repeats=[2, T("i3:5")], dim=[-1])
row("torch.movedim", X, source=[0, -1], destination=[1, 2])
row("torch.Tensor.unfold", X, dimension=[1, -1], size=[2, 3], step=[1, 2])
row("torch.as_strided", X, size=[(2, 3), (3,)], stride=[(7, 2), (5,)], storage_offset=[..., 2])
row("torch.cat", ["3,4", "3,2"], dim=[1, -1])
row("torch.stack", ["3,4", "3,4"], dim=[0, 1, -1])
for _name in ("chunk", "tensor_split"):
    row(f"lambda x, n, **k: torch.{_name}(x, n, **k)", X, 3, dim=[0, 1, -1])
row("torch.split", X, split_size_or_sections=[2], dim=[0, 1, -1])
row("torch.meshgrid", ["3", "4"], indexing=["ij", "xy"])
row("torch.take_along_dim", X, "i3:3,1,5", dim=[0, 1])
row("torch.block_diag", "2,3", "1,2")
row("torch.unflatten", "3,8", dim=[1, -1], sizes=[(2, 4), (2, -1)])

# ---- indices and writes ------------------------------------------------------------------------

row("torch.gather", X, index=[T("i3:3,4,5"), T("i3:2,1,5")], dim=[0, 1])
row("torch.scatter", X, index=[T("i3:3,4,5"), T("i3:2,1,5")], dim=[0, 1], value=[2.5])
row("torch.scatter", X, index=[T("i3:2,1,5")], src=[T("3,4,5")], dim=[0, 1],
    reduce=["add", "multiply"])
row("torch.scatter_add", X, index=[T("i3:2,1,5")], src=[T("3,4,5")], dim=[0, 1])
row("torch.scatter_reduce", X, index=[T("i3:2,2,5")], src=[T("3,4,5")], dim=[0, 1],
    reduce=["sum", "prod", "mean", "amax", "amin"], include_self=BOTH)
row("torch.index_add", X, index=[T("i3:4")], source=[T("3,4,5")], dim=[1], alpha=[..., -2])
row("torch.index_reduce", X, index=[T("i3:4")], source=[T("3,4,5")], dim=[1],
    reduce=["prod", "mean", "amax", "amin"], include_self=BOTH)
row("torch.index_copy", X, dim=[0], index=[T("i1:1")], source=[T("1,4,5")])
row("torch.index_fill", X, index=[T("i3:2")], dim=[0, -1], value=[2.5])
row("torch.index_select", X, index=[T("i3:6")], dim=[0, -1])
row("lambda x, i, v, **k: torch.index_put(x, (i,), v, **k)", "4,5", "i4:6", "6,5",
    accumulate=[True])
row("lambda x, i, v, **k: torch.put(x, i, v, **k)", "4,5", "i20:6", "6", accumulate=[True])
row("torch.masked_fill", X, "b:4,5", value=[-1.5, 0.0, -INF])
row("torch.masked_scatter", X, "b:3,4,5", "80")
row("torch.select_scatter", X, src=[T("3,5")], dim=[1], index=[0, -1])
row("torch.slice_scatter", X, src=[T("3,2,5")], dim=[1], start=[0], end=[4], step=[2])
row("torch.diagonal_scatter", "4,5", src=[T("4")], offset=[..., 1])

# ---- factors -----------------------------------------------------------------------------------

row("torch.linalg.solve", "s:3,3", "3,3", left=BOTH)
row("torch.linalg.solve_triangular", "s:4,4", "4,4", upper=BOTH, left=BOTH, unitriangular=BOTH)
row("torch.triangular_solve", "4,2", "s:4,4", upper=BOTH, transpose=BOTH, unitriangular=BOTH)
row("torch.linalg.cholesky", "s:2,4,4", upper=BOTH)
row("torch.cholesky_solve", "4,2", "s:4,4", upper=BOTH)
row("torch.linalg.qr", "5,3", mode=["reduced", "complete", "r"])
row("lambda x, **k: torch.linalg.svd(x, **k)[1]", "4,3", full_matrices=BOTH)
row("torch.linalg.eigvalsh", "s:4,4", UPLO=["L", "U"])
row("torch.linalg.pinv", "5,3", rcond=[..., 0.3], hermitian=[False])
row("torch.linalg.matrix_rank", "5,3", tol=[..., 1.5], hermitian=[False])
row("torch.linalg.inv", "s:2,3,3")
row("torch.linalg.slogdet", "2,3,3")

# ---- spectra -----------------------------------------------------------------------------------

NORM = [..., "forward", "backward", "ortho"]
for _name in ("fft", "ifft", "rfft", "ihfft"):
    row(f"torch.fft.{_name}", "3,6,5", n=[..., 4, 9], dim=[0, -1], norm=NORM)
for _name in ("irfft", "hfft"):
    row(f"lambda x, **k: torch.fft.{_name}(torch.complex(x, x.flip(0)), **k)", "3,6,5",
        n=[..., 4, 9], dim=[0, -1], norm=NORM)
for _name in ("fft2", "rfft2", "fftn", "rfftn"):
    row(f"torch.fft.{_name}", "3,4,5", s=[..., (3, 7)], dim=[(0, 1), (-2, -1)], norm=NORM)
row("torch.fft.fftshift", "3,4,5", dim=[..., 1, (0, 2)])
row("torch.fft.ifftshift", "3,4,5", dim=[..., 1, (0, 2)])
row("lambda x, **k: torch.stft(x, 8, return_complex=True, **k)", "2,40", hop_length=[..., 3],
    win_length=[..., 6], window=[..., T("p:6")], center=BOTH, pad_mode=["reflect", "constant"],
    normalized=BOTH, onesided=BOTH)
row("lambda x, **k: torch.istft(torch.stft(x, 8, window=torch.hann_window(8, dtype=x.dtype),"
    " return_complex=True), 8, window=torch.hann_window(8, dtype=x.dtype), **k)", "2,40",
    length=[..., 30], center=[True])

# ---- creation ----------------------------------------------------------------------------------

for _name in ("hann_window", "hamming_window", "blackman_window", "bartlett_window"):
    row(f"lambda x, n, **k: x + torch.{_name}(n, dtype=x.dtype, **k)", "7", 7, periodic=BOTH)
row("lambda x, n, **k: x + torch.kaiser_window(n, dtype=x.dtype, **k)", "7", 7, periodic=BOTH,
    beta=[..., 3.0])
row("lambda x, *a: x + torch.linspace(*a, 7, dtype=x.dtype)", "7", -1.0, 2.5)
row("lambda x, *a, **k: x + torch.logspace(*a, 7, dtype=x.dtype, **k)", "7", -1.0, 1.5,
    base=[..., 2.0])
row("lambda x, **k: x + torch.eye(3, dtype=x.dtype, **k)", "3,4", m=[4])
row("lambda x, n, **k: x + torch.hamming_window(n, dtype=x.dtype, **k)", "5", 5, periodic=[True],
    alpha=[0.5], beta=[..., 0.3])
