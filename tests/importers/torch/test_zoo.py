"""Every model of the benchmark zoo through both captures, in float64 against torch.

The zoo's definitions are found by GRAPHTOOL_ZOO, the folder of its zoo.py.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
import torch

from graphtool import dtypes, interp
from graphtool.errors import UnsupportedError
from graphtool.importers.torch import import_torch
from graphtool.ir.verify import verify_module

FOLDER = os.environ.get("GRAPHTOOL_ZOO", "")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore"),
              pytest.mark.skipif(not FOLDER, reason="GRAPHTOOL_ZOO names no folder")]

# fx meets control flow on proxies in these
EXPORT_ONLY = {"yolo_tiny", "bert_base_128", "gpt2_64", "llama_tiny_64", "llama_tiny_decode_kv128",
               "whisper_tiny_enc"}
# they compute in float32 inside, whatever they are given
TOLERANCE = {"llama_tiny_64": 1e-5, "llama_tiny_decode_kv128": 1e-5}
NAMES = ("resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "densenet121", "convnext_tiny",
         "shufflenet_v2", "vit_small", "unet_small", "yolo_tiny", "dcgan_gen", "lenet", "mlp_b1",
         "mlp_b64", "tabular_mlp", "lstm", "bert_base_128", "gpt2_64", "llama_tiny_64",
         "llama_tiny_decode_kv128", "whisper_tiny_enc")


@pytest.fixture(scope="module")
def build():
    sys.path.insert(0, FOLDER)
    import zoo
    assert set(zoo.ZOO) == set(NAMES)
    return zoo.build


@pytest.mark.parametrize("capture", ["export", "fx"])
@pytest.mark.parametrize("name", NAMES)
def test_zoo(name, capture, build):
    model, args, _ = build(name)
    if capture == "fx" and name in EXPORT_ONLY:
        with pytest.raises(UnsupportedError, match=r"GT1102(.|\n)*\.py:\d+ "):
            import_torch(model, args, capture=capture)
        return
    module = import_torch(model, args, capture=capture)
    verify_module(module)
    names = [v.hint for v in module.graph.inputs]
    got = interp.run(module, dict(zip(names, (a.numpy() for a in args), strict=True)),
                     dtype=dtypes.float64)
    with torch.no_grad():
        want = model.double()(*(a.double() if a.is_floating_point() else a for a in args))
    want = want if isinstance(want, tuple) else (want,)
    for a, b in zip(got.values(), want, strict=True):
        assert np.abs(a - b.numpy()).max() <= TOLERANCE.get(name, 1e-11) * b.abs().max()
