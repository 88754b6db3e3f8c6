"""Rows of torch.nn.functional: windows, activations, norms, losses, attention."""

from __future__ import annotations

from tests.lab.options.rows import T, row

BOTH = [False, True]
HOW = ["none", "mean", "sum"]
IMAGE, LINE, VOLUME = "2,4,7,6", "2,4,7", "1,2,4,5,3"

# ---- resampling, padding -----------------------------------------------------------------------

row("F.interpolate", IMAGE, size=[(8, 10), (4, 3), (1, 9), 6, ...],
    scale_factor=[..., 2, (0.6, 1.7)], mode=["nearest", "nearest-exact", "bilinear", "bicubic",
                                              "area"],
    align_corners=[..., False, True], antialias=BOTH)
row("F.interpolate", IMAGE, scale_factor=[1.5, (0.5, 2.3)], mode=["nearest", "bilinear", "bicubic"],
    recompute_scale_factor=[False, True])
row("F.interpolate", LINE, size=[3, 10], mode=["nearest", "nearest-exact", "linear", "area"],
    align_corners=[..., False, True])
row("F.interpolate", VOLUME, size=[(3, 4, 5), (2, 9, 3)], mode=["nearest", "trilinear", "area"],
    align_corners=[..., False, True])
row("F.grid_sample", "2,3,5,4", "2,3,4,2", mode=["bilinear", "nearest", "bicubic"],
    padding_mode=["zeros", "border", "reflection"], align_corners=BOTH)
row("F.grid_sample", "1,2,3,5,4", "1,2,3,4,3", mode=["bilinear", "nearest"],
    padding_mode=["zeros", "border", "reflection"], align_corners=BOTH)
row("F.affine_grid", "2,2,3", size=[(2, 3, 4, 5), (2, 1, 1, 3)], align_corners=BOTH)
row("F.pad", IMAGE, pad=[(1, 2), (2, 1, 0, 3), (-1, 2), (-1, -1, 1, 1)],
    mode=["constant", "reflect", "replicate", "circular"], value=[..., 1.5, -float("inf")])
row("F.pad", LINE, pad=[(1, 2), (3, 0)], mode=["reflect", "replicate", "circular"])
row("F.pad", VOLUME, pad=[(1, 1, 2, 0, 1, 0)], mode=["reflect", "replicate", "circular"])
row("F.pixel_shuffle", IMAGE, upscale_factor=[1, 2])
row("F.pixel_unshuffle", "2,3,4,6", downscale_factor=[1, 2])
row("F.channel_shuffle", IMAGE, groups=[1, 2, 4])

# ---- convolutions and pools --------------------------------------------------------------------

row("F.conv2d", IMAGE, "8,2,3,2", bias=[..., T("8")], stride=[1, (2, 1)],
    padding=[0, (1, 2), "same", "valid"], dilation=[1, (2, 1)], groups=[2])
row("F.conv1d", LINE, "6,4,3", bias=[..., T("6")], stride=[1, 2], padding=[0, 2, "same"],
    dilation=[1, 2])
row("F.conv3d", VOLUME, "4,1,2,3,1", stride=[1, (1, 2, 1)], padding=[0, (1, 1, 0)], groups=[2],
    dilation=[1, (1, 2, 1)])
row("F.conv_transpose2d", IMAGE, "4,3,3,2", bias=[..., T("6")], stride=[1, (2, 3)],
    padding=[0, (1, 0)], output_padding=[0, (1, 1)], groups=[2], dilation=[1, (2, 1)])
row("F.conv_transpose1d", LINE, "4,3,3", stride=[1, 2], padding=[0, 1], output_padding=[0, 1],
    dilation=[1, 2])
row("F.conv_transpose3d", VOLUME, "2,2,2,3,1", stride=[1, (1, 2, 1)], padding=[0, (1, 1, 0)],
    output_padding=[0, (0, 1, 0)])
row("F.unfold", IMAGE, kernel_size=[2, (3, 2)], dilation=[1, (2, 1)], padding=[0, 1],
    stride=[1, (2, 1)])
row("F.fold", "2,24,30", output_size=[(7, 7), (6, 7)], kernel_size=[(2, 3), (2, 2)],
    padding=[0, (0, 0), (1, 0)], stride=[1, (1, 1)], dilation=[1])
row("F.max_pool2d", IMAGE, kernel_size=[2, (3, 2)], stride=[..., (2, 1)], padding=[0, 1],
    dilation=[1, 2], ceil_mode=BOTH, return_indices=BOTH)
row("F.max_pool1d", LINE, kernel_size=[2, 3], stride=[..., 1, 4], padding=[0, 1], ceil_mode=BOTH)
row("F.max_pool3d", VOLUME, kernel_size=[2, (2, 3, 1)], stride=[..., 1], padding=[0, (1, 1, 0)],
    ceil_mode=BOTH)
row("F.avg_pool2d", IMAGE, kernel_size=[2, (3, 2)], stride=[..., (2, 3)], padding=[0, 1],
    ceil_mode=BOTH, count_include_pad=BOTH, divisor_override=[..., 5])
row("F.avg_pool1d", LINE, kernel_size=[2, 3], stride=[..., 1, 4], padding=[0, 1], ceil_mode=BOTH,
    count_include_pad=BOTH)
row("F.avg_pool3d", VOLUME, kernel_size=[2, (2, 3, 1)], stride=[..., 2], padding=[0, (1, 1, 0)],
    ceil_mode=BOTH, count_include_pad=BOTH)
row("F.lp_pool2d", IMAGE, norm_type=[1.0, 2.0, 3.0], kernel_size=[2, (3, 2)], stride=[..., 1],
    ceil_mode=BOTH)
row("F.lp_pool1d", LINE, norm_type=[1.0, 2.0], kernel_size=[2, 3], ceil_mode=BOTH)
row("F.adaptive_avg_pool2d", IMAGE, output_size=[1, (3, 4), (None, 2), (9, 5)])
row("F.adaptive_max_pool2d", IMAGE, output_size=[1, (3, 4), (9, 5)], return_indices=BOTH)
row("F.adaptive_avg_pool3d", VOLUME, output_size=[1, (3, 2, 2)])
row("lambda x, **k: F.max_unpool2d(*F.max_pool2d(x, 2, 2, return_indices=True), 2, 2, **k)",
    "2,3,6,7", output_size=[..., (6, 7), (7, 6)])

# ---- activations -------------------------------------------------------------------------------

for _name in ("softmax", "log_softmax", "softmin"):
    row(f"F.{_name}", "3,4,5", dim=[0, 1, -1], dtype=[..., "float64", "float16"])
row("F.gelu", "3,4", approximate=["none", "tanh"])
row("F.elu", "3,4", alpha=[..., 0.5, -0.5])
row("F.celu", "3,4", alpha=[..., 0.5, 2.0])
row("F.leaky_relu", "3,4", negative_slope=[..., 0.3, -0.2, 2.0])
row("F.hardtanh", "3,4", min_val=[..., -0.2], max_val=[..., 3.0])
row("F.softplus", "3,4", beta=[..., 0.5, 3.0], threshold=[..., 1.0])
row("F.softshrink", "3,4", lambd=[..., 0.0, 1.0])
row("F.hardshrink", "3,4", lambd=[..., 0.0, 1.0, -0.5])
row("F.threshold", "3,4", threshold=[0.1, -1.0], value=[-2.0, 5.0])
row("F.rrelu", "3,4", lower=[..., 0.2], upper=[..., 0.4], training=[False])
row("F.prelu", "2,3,4", weight=[T("u:1"), T("3")])
row("F.glu", "4,6", dim=[0, 1, -1])
for _name in ("logsigmoid", "hardsigmoid", "hardswish", "silu", "mish", "tanhshrink", "softsign",
              "relu6", "selu", "sigmoid", "tanh"):
    row(f"F.{_name}", "3,4")

# ---- norms -------------------------------------------------------------------------------------

row("F.normalize", "3,4,5", p=[..., 1, 3.0, 0.5, float("inf")], dim=[0, -1, (1, 2)],
    eps=[..., 0.5])
row("F.layer_norm", "3,4,5", normalized_shape=[(5,), (4, 5)], eps=[..., 0.1])
row("F.layer_norm", "3,4,5", normalized_shape=[(5,)], weight=[..., T("5")], bias=[..., T("5")])
row("F.rms_norm", "3,4,5", normalized_shape=[(5,), (4, 5)], eps=[..., 0.1])
row("F.rms_norm", "3,4,5", normalized_shape=[(5,)], weight=[T("5")], eps=[..., 0.1])
row("F.group_norm", IMAGE, num_groups=[1, 2, 4], weight=[..., T("4")], bias=[..., T("4")],
    eps=[..., 0.1])
row("F.instance_norm", IMAGE, running_mean=[..., T("4")], running_var=[..., T("p:4")],
    weight=[..., T("4")], use_input_stats=BOTH, eps=[..., 0.1])
row("F.batch_norm", IMAGE, "4", "p:4", weight=[..., T("4")], bias=[..., T("4")], training=BOTH,
    eps=[..., 0.1])
row("F.batch_norm", IMAGE, None, None, training=[True], weight=[..., T("4")])
row("F.local_response_norm", IMAGE, size=[2, 3], alpha=[..., 0.5], beta=[..., 0.3], k=[..., 2.0])

# ---- losses ------------------------------------------------------------------------------------

row("F.nll_loss", "6,5", "i5:6", weight=[..., T("u:5")], ignore_index=[..., 1], reduction=HOW)
row("F.nll_loss", "2,5,3", "i5:2,3", weight=[..., T("u:5")], ignore_index=[..., 1], reduction=HOW)
row("F.cross_entropy", "6,5", "i5:6", weight=[..., T("u:5")], ignore_index=[..., 1],
    label_smoothing=[..., 0.2], reduction=HOW)
row("F.cross_entropy", "6,5", "u:6,5", weight=[..., T("u:5")], label_smoothing=[..., 0.2],
    reduction=HOW)
row("F.cross_entropy", "2,5,3", "i5:2,3", weight=[..., T("u:5")], ignore_index=[..., 1],
    label_smoothing=[..., 0.2], reduction=HOW)
row("F.binary_cross_entropy", "u:3,4", "u:3,4", weight=[..., T("u:4"), T("u:3,4")], reduction=HOW)
row("F.binary_cross_entropy_with_logits", "3,4", "u:3,4", weight=[..., T("u:4")],
    pos_weight=[..., T("p:4")], reduction=HOW)
row("F.mse_loss", "3,4", "3,4", weight=[..., T("u:3,4")], reduction=HOW)
row("F.l1_loss", "3,4", "3,4", reduction=HOW)
row("F.smooth_l1_loss", "3,4", "3,4", beta=[..., 0.0, 0.3, 2.0], reduction=HOW)
row("F.huber_loss", "3,4", "3,4", delta=[..., 0.3, 2.0], reduction=HOW)
row("F.kl_div", "3,4", "u:3,4", log_target=BOTH, reduction=[*HOW, "batchmean"])
row("F.poisson_nll_loss", "p:3,4", "p:3,4", log_input=BOTH, full=BOTH, eps=[..., 0.1],
    reduction=HOW)
row("F.gaussian_nll_loss", "3,4", "3,4", "p:3,4", full=BOTH, eps=[..., 0.5], reduction=HOW)
row("F.gaussian_nll_loss", "3,4", "3,4", var=[0.7, T("p:3"), T("p:3,1")], full=BOTH)
row("lambda x, y, **k: F.hinge_embedding_loss(x, y.sign(), **k)", "3,4", "3,4",
    margin=[..., 0.3], reduction=HOW)
row("lambda x, y, z, **k: F.margin_ranking_loss(x, y, z.sign(), **k)", "6", "6", "6",
    margin=[..., 0.3], reduction=HOW)
row("F.multi_margin_loss", "6,5", "i5:6", p=[1, 2], margin=[..., 0.3], weight=[..., T("u:5")],
    reduction=HOW)
row("F.multilabel_margin_loss", "3,5", "i5:3,5", reduction=HOW)
row("F.multilabel_soft_margin_loss", "3,5", "u:3,5", weight=[..., T("u:5")], reduction=HOW)
row("lambda x, y, **k: F.soft_margin_loss(x, y.sign(), **k)", "3,4", "3,4", reduction=HOW)
row("F.triplet_margin_loss", "3,4", "3,4", "3,4", margin=[..., 0.2], p=[..., 1.0, 3.0],
    eps=[..., 0.1], swap=BOTH, reduction=HOW)
row("lambda x, y, z, **k: F.cosine_embedding_loss(x, y, z.sign(), **k)", "6,4", "6,4", "6",
    margin=[..., 0.3], reduction=HOW)
row("lambda x, t, **k: F.ctc_loss(x.log_softmax(2), t + (k.get('blank', 0) == 0),"
    " torch.tensor([7, 5]), torch.tensor([3, 2]), **k)", "7,2,5", "i4:2,3",
    blank=[..., 4], zero_infinity=BOTH, reduction=HOW)

# ---- the rest of torch.nn.functional -----------------------------------------------------------

row("F.embedding", "i6:3,4", "6,5", padding_idx=[..., 2, -1], scale_grad_by_freq=BOTH)
row("F.embedding_bag", "i6:3,4", "6,5", mode=["sum", "mean", "max"], padding_idx=[..., 2],
    per_sample_weights=[..., T("3,4")])
row("lambda i, w, **k: F.embedding_bag(i, w, torch.tensor([0, 2, 2, 7]), **k)", "i6:7", "6,5",
    mode=["sum", "mean", "max"], include_last_offset=BOTH, padding_idx=[..., 2])
row("F.one_hot", "i6:3,4", num_classes=[6, 9])
row("F.cosine_similarity", "3,4", "3,4", dim=[0, 1, -1], eps=[..., 0.5])
row("F.pairwise_distance", "3,4", "3,4", p=[..., 1.0, 3.0, float("inf")], eps=[..., 0.1],
    keepdim=BOTH)
row("F.pdist", "5,3", p=[..., 0.0, 1.0, 3.0, float("inf")])
row("torch.cdist", "2,5,3", "2,4,3", p=[0.0, 1.0, 2.0, 3.5, float("inf")], compute_mode=[
    ..., "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
row("F.scaled_dot_product_attention", "2,4,5,8", "2,4,5,8", "2,4,5,8",
    attn_mask=[..., T("b:5,5"), T("5,5"), T("2,1,5,5")], scale=[..., 0.3])
row("F.scaled_dot_product_attention", "2,4,3,8", "2,2,5,8", "2,2,5,6", enable_gqa=[True],
    is_causal=BOTH, scale=[..., 0.3])
row("F.linear", "3,4", "5,4", bias=[..., T("5")])
row("F.bilinear", "3,4", "3,5", "2,4,5", bias=[..., T("2")])
row("F.dropout", "3,4", p=[0.0, 0.4], training=[False])
