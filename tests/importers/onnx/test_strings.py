"""Strings and pictures from ONNX: as onnxruntime has them in the evaluator, refused in C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from graphtool import interp
from graphtool.errors import UnsupportedError
from graphtool.importers.onnx import import_model
from graphtool.ir import serial
from graphtool.lower import lower
from graphtool.target import named
from tests.evaluated import picture
from tests.importers.onnx.build import agree, checked, evaluate, model, node

X = np.array(["an apple", "pear", "", "été", "pear"], object)
PEAR = np.array(["pear"], object)
ML = {"domain": "ai.onnx.ml"}


def ml(nodes: list[Any], inputs: list[str], outputs: list[str], **weights: Any) -> Any:
    proto = model(nodes, inputs, outputs, weights)
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return proto


@pytest.mark.parametrize("nodes, out", [
    (["y = StringConcat(x, w)"], "y str 5"), (["y = Equal(x, w)"], "y bool 5"),
    (["e = Equal(x, w)", "y = Where(e, w, x)"], "y str 5"),
    ([node("y = Concat(x, w)", axis=0)], "y str 6"), (["y = Gather(x, i)"], "y str 2"),
    (["y = Identity(x)"], "y str 5"), (["y, a, b, c = Unique(x)"], "y str ?"),
    ([node("y = Unique(x)", sorted=0)], "y str ?"),
    (["y, n = StringSplit(x)"], "y str ? ?"),
    ([node("y, n = StringSplit(x)", delimiter="p", maxsplit=1)], "y str ? ?"),
    ([node("y = StringNormalizer(x)", case_change_action="LOWER", stopwords=["pear"],
           locale="C")],
     "y str ?"),
    ([node("y = RegexFullMatch(x)", pattern=r"p\w+")], "y bool 5"),
    (["y, n = StringSplit(x)", node("z = Cast(n)", to=TensorProto.STRING)], "z str 5"),
    ([node("y = CategoryMapper(x)", cats_strings=["pear", "", "a"], cats_int64s=[4, 2, 3], **ML)],
     "y i64 5"),
    ([node("y = LabelEncoder(x)", keys_strings=["pear", ""], values_strings=["Birne", "?"],
           **ML)], "y str 5"),
    ([node("y = OneHotEncoder(x)", cats_strings=["pear", "é"], **ML)], "y f32 5 2"),
    ([node("y = TfIdfVectorizer(x)", max_gram_length=2, min_gram_length=1, max_skip_count=0,
           mode="TF", ngram_counts=[0, 2], ngram_indexes=[0, 1, 2],
           pool_strings=["pear", "", "", "été"])], "y f32 3")])
def test_as_onnxruntime_has_them(nodes: list[Any], out: str) -> None:
    agree(ml(nodes, ["x str 5"], [out], w=PEAR, i=np.array([4, -5])), {"x": X})


@pytest.mark.parametrize("text", ["the cat sat on the mat", "cat"])
def test_a_text_of_any_length(text: str) -> None:
    """Cut at spaces, cleaned, counted: how many words there are the run tells."""
    grams = node("y = TfIdfVectorizer(c)", max_gram_length=2, min_gram_length=1, mode="TF",
                 max_skip_count=1, ngram_counts=[0, 2], ngram_indexes=[0, 1, 2, 3],
                 pool_strings=["cat", "mat", "the", "mat", "sat", "the"])
    clean = node("c = StringNormalizer(w)", case_change_action="NONE", stopwords=["the"],
                 locale="C", is_case_sensitive=1)
    nodes = ["p, n = StringSplit(x)", "w = Reshape(p, flat)", clean, grams]
    agree(model(nodes, ["x str 1"], ["y f32 4"], {"flat": np.array([-1])}),
          {"x": np.array([text], object)})


@pytest.mark.parametrize("attrs", [
    {"tokenexp": r"[a-z]+"}, {"tokenexp": r"[a-z]+", "mincharnum": 3}, {"separators": [" ", "p"]},
    {"separators": [" "], "mark": 1}, {"separators": [""], "pad_value": "#"}], ids=repr)
def test_tokens(attrs: Any) -> None:
    call = node("y = Tokenizer(x)", **{"domain": "com.microsoft", "mark": 0, "mincharnum": 1,
                                       "pad_value": "-", **attrs})
    text = np.array(["an apple pie", "pear", "", "a  b"], object)
    agree(model([call], ["x str 4"], ["y str ? ?"]), {"x": text})


def test_labels_of_a_tree_are_strings() -> None:
    tree = node("l, p = TreeEnsembleClassifier(x)", nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2],
                nodes_featureids=[0] * 3, nodes_values=[0.5, 0.0, 0.0],
                nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0],
                nodes_falsenodeids=[2, 0, 0], class_treeids=[0] * 4, class_nodeids=[1, 1, 2, 2],
                class_ids=[0, 1, 0, 1], class_weights=[1.0, 0.0, 0.2, 0.8],
                classlabels_strings=["no", "yes"], **ML)
    proto = ml([tree], ["x f32 2 1"], ["l str 2", "p f32 2 2"])
    agree(proto, {"x": np.array([[0.1], [0.9]], np.float32)})


def test_numbers_by_the_old_encoder() -> None:
    proto = model([node("y = LabelEncoder(x)", classes_strings=["a", "b"], **ML)], ["x i64 3"],
                  ["y str 3"])
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    assert evaluate(proto, {"x": np.array([1, 7, 0])})[0].tolist() == ["b", "_Unused", "a"]


def test_one_nan_is_like_another_key() -> None:
    encoder = node("y = LabelEncoder(x)", keys_floats=[1.0, float("nan")], values_int64s=[5, 6],
                   **ML)
    proto = ml([encoder], ["x f32 3"], ["y i64 3"])
    assert evaluate(proto, {"x": np.array([np.nan, 1, 2], np.float32)})[0].tolist() == [6, 5, -1]


def test_bytes_and_fixed_lengths_are_taken() -> None:
    proto = model(["y = Identity(x)"], ["x str 2"], ["y str 2"])
    for x in (np.array(["a", "é"]), np.array([b"a", b"\xc3\xa9"], object)):
        assert evaluate(proto, {"x": x})[0].tolist() == ["a", "é"]


def test_a_graph_file_holds_many_strings() -> None:
    words = np.array([f"w{i}é\n\"" for i in range(40)], object)
    module = checked(model(["y = Gather(w, i)"], ["i i64 2"], ["y str 2"], {"w": words}))
    again = serial.loads(serial.dumps(module))
    assert interp.run(again, {"i": np.array([3, 39])})["y"].tolist() == [words[3], words[39]]


@pytest.mark.parametrize("nodes, inputs, out, names", [
    (["y = StringConcat(x, x)"], ["x str 2"], "y str 2", ["input", "string_concat"]),
    (["y = Gather(w, i)"], ["i i64 2"], "y str 2", ["constant", "gather"]),
    ([node("y = ImageDecoder(x)")], ["x u8 N"], "y u8 ? ? 3", ["decode_image", "image_shape"])])
def test_compiled_code_refuses_them_by_name(nodes: list[Any], inputs: list[str], out: str,
                                            names: list[str]) -> None:
    module = import_model(model(nodes, inputs, [out], {"w": PEAR}))
    with pytest.raises(UnsupportedError) as caught:
        lower(module, named("generic"))
    assert caught.value.code == "GT2001" and "graphtool eval" in caught.value.hint
    assert [i.name for i in caught.value.items] == names


def test_a_picture_of_any_size() -> None:
    proto = model([node("y = ImageDecoder(x)", pixel_format="BGR")], ["x u8 N"], ["y u8 H W 3"])
    got, = evaluate(proto, {"x": picture("PNG")})
    assert got[1, 2].tolist() == [140, 133, 126]
    assert evaluate(proto, {"x": np.zeros(5, np.uint8)})[0].shape == (0, 0, 3)


def test_regions_of_whole_pixels() -> None:
    pool = node("y = MaxRoiPool(x, r)", pooled_shape=[2, 3], spatial_scale=0.5)
    rois = np.array([[0, 0, 0, 9, 9], [1, 3, 2, 5, 4], [0, 8, 8, 30, 30], [1, 1, 1, 1, 1]])
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 7)).astype(np.float32)
    agree(model([pool], ["x f32 2 3 6 7", "r f32 4 5"], ["y f32 4 3 2 3"]),
          {"x": x, "r": rois.astype(np.float32)})
