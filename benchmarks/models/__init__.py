"""The zoo: which models there are, where they are defined and what they need to be installed.

Definitions are in vision.py (torchvision, timm), dense.py and small.py (plain torch) and
language.py (transformers); seeded.py makes them. EXTRA holds more kinds of models, extra*.py and
sequence.py their definitions: what was tuned on the zoo is to hold there too. INT8 are quantised
forms of some, ../quantised.py makes them. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """Where a model's definition is and what it needs to be installed besides torch."""

    module: str
    kind: str
    needs: tuple[str, ...] = ()


_VISION = Entry("vision", "cnn", ("torchvision",))
_LANGUAGE = Entry("language", "transformer", ("transformers",))
ZOO: dict[str, Entry] = {
    "resnet18": _VISION,
    "resnet50": _VISION,
    "mobilenet_v2": _VISION,
    "efficientnet_b0": _VISION,
    "densenet121": _VISION,
    "convnext_tiny": _VISION,
    "shufflenet_v2": _VISION,
    "vit_small": Entry("vision", "transformer", ("timm", "torchvision")),
    "unet_small": Entry("dense", "cnn"),
    "yolo_tiny": Entry("dense", "cnn"),
    "dcgan_gen": Entry("dense", "cnn"),
    "lenet": Entry("small", "small"),
    "mlp_b1": Entry("small", "small"),
    "mlp_b64": Entry("small", "small"),
    "tabular_mlp": Entry("small", "small"),
    "lstm": Entry("small", "recurrent"),
    "bert_base_128": _LANGUAGE,
    "gpt2_64": _LANGUAGE,
    "llama_tiny_64": _LANGUAGE,
    "llama_tiny_decode_kv128": _LANGUAGE,
    "whisper_tiny_enc": _LANGUAGE,
}

_TIMM = Entry("extra", "transformer", ("timm", "torchvision"))
_MORE = Entry("extra", "cnn", ("torchvision",))
_SEQUENCE = Entry("sequence", "transformer", ("transformers",))
_PLAIN = Entry("extra_small", "small")
EXTRA: dict[str, Entry] = {
    "resnet34": _MORE,
    "resnet101": _MORE,
    "resnext50": _MORE,
    "regnet_y_400mf": _MORE,
    "vgg11_bn": _MORE,
    "alexnet": _MORE,
    "inception_v3": _MORE,
    "googlenet": _MORE,
    "squeezenet": _MORE,
    "mnasnet": _MORE,
    "mobilenet_v3_small": _MORE,
    "lraspp_mobilenet_v3": _MORE,
    "r3d_18_small": _MORE,
    "swin_tiny": Entry("extra", "transformer", ("torchvision",)),
    "deit_tiny": _TIMM,
    "mixer_s16": _TIMM,
    "resnet18_b8": _MORE,
    "distilbert_64": _SEQUENCE,
    "roberta_small_256": _SEQUENCE,
    "t5_small_enc": _SEQUENCE,
    "gpt2_small_decode_kv64": _SEQUENCE,
    "gru": _PLAIN,
    "rnn_b8": _PLAIN,
    "tcn": _PLAIN,
    "autoencoder": _PLAIN,
    "conv_autoencoder": _PLAIN,
    "cnn_32": _PLAIN,
    "mlp_tiny": _PLAIN,
    "mlp_wide_b16": _PLAIN,
    "attention_tiny": _PLAIN,
    **dict.fromkeys(
        ("deberta_v2_128", "mpnet_384", "bloom_128", "mistral_window_512", "qwen2_decode_kv1024",
         "gpt2_decode_b8_kv1024", "mamba_16", "wav2vec2"),
        Entry("extra_language", "transformer", ("transformers",))),
    **dict.fromkeys(("gcn_dense", "gcn_edges", "dlrm_b32"), Entry("extra_graphs", "small")),
    **dict.fromkeys(("edgenext_x_small", "resnest14d", "hrnet_w18_small", "repvgg_a0"),
                    Entry("extra", "cnn", ("timm", "torchvision"))),
    **dict.fromkeys(("separation", "beats", "segments_factorised", "style_transfer",
                     "diffusion_step", "keywords_b16", "text_lines"), Entry("extra_nets", "cnn")),
}
_QUANTISED = Entry("quantised", "int8", ("onnxruntime",))
_FORMS = {  # and the models of which INT8 has them; any other model has them too, by name
    "qdq": ("resnet18", "resnet50", "mobilenet_v2", "mlp_b64", "bert_base_128", "vit_small",
            "deit_tiny", "gpt2_64", "convnext_tiny"),
    "operators": ("resnet18", "mobilenet_v2"),
    "dynamic": ("mlp_b1", "distilbert_64", "bert_base_128")}
INT8 = {f"{name}.{form}": _QUANTISED for form, names in _FORMS.items() for name in names}
ALL = ZOO | EXTRA | INT8
SETS: dict[str, dict[str, Entry]] = {
    "zoo": ZOO, "extra": EXTRA, "int8": INT8, "all": ZOO | EXTRA}


DRAWN = "timm."  # a model of timm that nobody chose: `drawn:SEED:COUNT` are such, see drawn.py
_DRAWN = Entry("drawn", "drawn", ("timm", "torchvision"))


def named(text: str) -> list[str]:
    """Models by name, by the set they are in, or drawn by seed, separated by commas."""
    return list(dict.fromkeys(model for name in text.split(",") for model in _one(name)))


def _one(name: str) -> Iterable[str]:
    if not name.startswith("drawn:"):
        return SETS.get(name, {name: None})
    from benchmarks.models.drawn import draw
    _, seed, count = name.split(":")
    return draw(int(seed), int(count))


def entry(name: str) -> Entry:
    """Where the model is defined. Raises KeyError if there is none of that name."""
    base, _, form = name.rpartition(".")
    if form in _FORMS and entry(base):
        return _QUANTISED
    return _DRAWN if name.startswith(DRAWN) else ALL[name]


# what `open` builds with open sizes (open_sizes.py), and the sizes at which it is timed
_TEXTS = ((1, 32), (2, 96), (8, 64), (4, 128))
_IMAGES = ((1, 64, 64), (1, 128, 128), (2, 96, 128), (4, 64, 96))
BATCHES = {  # of training tasks
    "mlp_b64": (16, 64), "lenet_b64": (16, 64), "resnet8_cifar_b32": (8, 32),
    "transformer_enc_b16": (4, 16), "gpt2_tiny_b4": (2, 4), "lstm_b32": (8, 32), "lm_14m": (2, 8),
    "lstm_lm_b16": (4, 16), "unet_b8": (2, 8), "gan_b32": (8, 32), "vae_b64": (16, 64),
    "dlrm_b256": (64, 256), "speech_b4": (1, 4)}
_PLANES = ((1, 128, 128), (1, 224, 224), (2, 160, 192), (4, 96, 128))
OPEN_ZOO = {  # models of the zoo, and of other kinds: open_zoo.py
    "autoencoder": _PLANES, "lenet": ((1,), (4,), (16,), (64,)),
    **dict.fromkeys(("tcn", "vocoder"), ((1, 64), (2, 100), (4, 128), (1, 400))),
    "graph_attention": ((50, 200), (200, 1000), (1000, 8000), (2000, 12000))}
OPEN: dict[str, tuple[tuple[int, ...], ...]] = {
    **{f"zoo.{name}": sizes for name, sizes in OPEN_ZOO.items()},
    **dict.fromkeys(("encoder", "encoder_fast", "attention", "language", "listener", "conformer",
                     "lstm", "gru"), _TEXTS),
    "patches": ((1,), (2,), (4,), (8,)), "cnn": ((1,), (4,), (16,), (64,)),
    "segmenter": _IMAGES, "unet": _IMAGES, "mlp": ((1,), (4,), (16,), (64,)),
    "recommender": ((1,), (8,), (32,), (128,)),
    "graph": ((50, 200), (200, 1000), (1000, 8000), (2000, 12000)),
    "train_cnn": ((4,), (8,), (16,), (64,)), "train_encoder": ((2,), (4,), (8,), (16,)),
    **{f"train.{task}": tuple((n,) for n in sizes) for task, sizes in BATCHES.items()}}
DIGITS = ("digits_mlp", "digits_cnn", "digits_transformer")  # trained, in trained_digits.py
# what `quantise` compares tools on: trained networks, and seeded ones of several kinds
NARROW = ("resnet18", "resnet50", "mobilenet_v2", "vit_small", "bert_base_128", "gpt2_64",
          "deit_tiny", "unet_small")
QUANTISE = (*DIGITS, "lenet", "mlp_b64", "tabular_mlp", "unet_small", "yolo_tiny", "dcgan_gen",
            "distilbert_64")
