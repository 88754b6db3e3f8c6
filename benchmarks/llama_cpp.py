"""llama.cpp through its C interface, from prebuilt libraries: those of the npm package
@node-llama-cpp/linux-x64, whose folder `bins/linux-x64` is given."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class _Parameters(ctypes.Structure):
    """The parameters of a model or context: more bytes than any version has. Those of a context
    begin with the numbers of tokens in it, in a batch, and in a part of a batch."""

    _fields_ = [("n", ctypes.c_uint32 * 3), ("rest", ctypes.c_char * 500)]


class _Batch(ctypes.Structure):
    _fields_ = [("n", ctypes.c_int32), ("rest", ctypes.c_void_p * 6)]


class LlamaCpp:
    """A model in GGUF. `libraries` is the folder of libllama."""

    def __init__(self, libraries: Path, model: Path, tokens: int, room: int, threads: int) -> None:
        base = ctypes.CDLL(str(next(libraries.glob("libggml-base.so*"))), ctypes.RTLD_GLOBAL)
        ggml = ctypes.CDLL(str(next(libraries.glob("libggml.*so*"))), ctypes.RTLD_GLOBAL)
        self.lib = lib = ctypes.CDLL(str(next(libraries.glob("libllama.*so*"))))
        quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
        self.quiet = quiet(lambda *_: None)
        for library, name in ((base, "ggml_log_set"), (lib, "llama_log_set")):
            getattr(library, name)(self.quiet, None)
        ggml.ggml_backend_load_all_from_path(os.fsencode(libraries))
        for name in ("model_default_params", "context_default_params"):
            getattr(lib, f"llama_{name}").restype = _Parameters
        for name in ("model_load_from_file", "init_from_model", "get_memory"):
            getattr(lib, f"llama_{name}").restype = ctypes.c_void_p
        lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, _Parameters]
        lib.llama_init_from_model.argtypes = [ctypes.c_void_p, _Parameters]
        lib.llama_get_memory.argtypes = [ctypes.c_void_p]
        lib.llama_memory_seq_rm.argtypes = [ctypes.c_void_p, *[ctypes.c_int32] * 3]
        lib.llama_batch_get_one.restype = _Batch
        lib.llama_decode.argtypes = [ctypes.c_void_p, _Batch]
        lib.llama_set_n_threads.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]
        lib.llama_get_logits_ith.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        lib.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
        lib.llama_backend_init()
        held = lib.llama_model_load_from_file(os.fsencode(model), lib.llama_model_default_params())
        if not held:
            raise RuntimeError(f"llama.cpp cannot read {model}")
        parameters = lib.llama_context_default_params()
        parameters.n[:] = [room, room, room]
        self.context = lib.llama_init_from_model(held, parameters)
        self.memory = lib.llama_get_memory(self.context)
        self.tokens = tokens
        lib.llama_set_n_threads(self.context, threads, threads)

    def back(self, to: int) -> None:
        """Forget all tokens from this position on."""
        self.lib.llama_memory_seq_rm(self.memory, 0, to, -1)

    def run(self, ids: Array) -> Array:
        """The logits after these tokens, which follow those before."""
        given = np.ascontiguousarray(ids, np.int32)
        batch = self.lib.llama_batch_get_one(
            given.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)), ctypes.c_int32(given.size))
        if status := self.lib.llama_decode(self.context, batch):
            raise RuntimeError(f"llama_decode says {status}")
        return np.ctypeslib.as_array(self.lib.llama_get_logits_ith(self.context, -1),
                                     (self.tokens,)).copy()
