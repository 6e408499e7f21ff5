"""Writes trained weights and vocabulary as an F32 GGUF.

Owns the container and the metadata. Does not quantise: `assay model convert` does.
Tensors keep the order of their infos and every one starts at a multiple of 32 bytes, because
readers reject anything else.

    python3 export.py --vocab vocab.json --weights weights.npz --out model-f32.gguf
"""

import argparse
import json
import struct

import numpy as np

from bpe import SPECIALS
from model import Shape

ALIGNMENT = 32
U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
NORMAL, CONTROL = 1, 3
TENSOR_F32 = 0
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SCALARS = {U32: "<I", F32: "<f", BOOL: "<?", I32: "<i"}


def pack_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def pack_value(kind, value):
    return pack_string(value) if kind == STRING else struct.pack(SCALARS[kind], value)


def pack_pair(key, kind, value):
    """One metadata entry; a list becomes an array of the given kind."""
    if isinstance(value, list):
        head = struct.pack("<iiQ", ARRAY, kind, len(value))
        return pack_string(key) + head + b"".join(pack_value(kind, item) for item in value)
    return pack_string(key) + struct.pack("<i", kind) + pack_value(kind, value)


def model_metadata(shape):
    return [
        ("general.architecture", STRING, "llama"),
        ("general.name", STRING, "assay-tiny"),
        (
            "general.description",
            STRING,
            "A very small model that tells short tales about metals, smiths and assayers.",
        ),
        ("general.license", STRING, "mit"),
        ("general.file_type", U32, 0),
        ("llama.block_count", U32, shape.layers),
        ("llama.context_length", U32, shape.context),
        ("llama.embedding_length", U32, shape.dim),
        ("llama.feed_forward_length", U32, shape.hidden),
        ("llama.attention.head_count", U32, shape.heads),
        ("llama.attention.head_count_kv", U32, shape.kv_heads),
        ("llama.attention.layer_norm_rms_epsilon", F32, shape.eps),
        ("llama.rope.dimension_count", U32, shape.head_dim),
        ("llama.rope.freq_base", F32, shape.rope_base),
        ("llama.vocab_size", U32, shape.vocab),
    ]


def vocab_metadata(vocab):
    kinds = [CONTROL if token in SPECIALS else NORMAL for token in vocab["tokens"]]
    return [
        ("tokenizer.ggml.model", STRING, "gpt2"),
        ("tokenizer.ggml.pre", STRING, "smollm"),
        ("tokenizer.ggml.tokens", STRING, vocab["tokens"]),
        ("tokenizer.ggml.token_type", I32, kinds),
        ("tokenizer.ggml.merges", STRING, [" ".join(pair) for pair in vocab["merges"]]),
        ("tokenizer.ggml.bos_token_id", U32, 0),
        ("tokenizer.ggml.eos_token_id", U32, 0),
        ("tokenizer.ggml.add_bos_token", BOOL, False),
        ("tokenizer.ggml.add_space_prefix", BOOL, False),
        ("tokenizer.chat_template", STRING, CHAT_TEMPLATE),
    ]


def load_tensors(path):
    """The weights under their GGUF names."""
    with np.load(path) as arrays:
        return {
            name if name.endswith(".weight") else name + ".weight": arrays[name]
            for name in arrays.files
        }


def padding(size):
    return b"\0" * (-size % ALIGNMENT)


def write_gguf(path, metadata, tensors):
    infos, offset = [], 0
    for name, tensor in tensors.items():
        sizes = struct.pack(f"<I{tensor.ndim}Q", tensor.ndim, *reversed(tensor.shape))
        infos.append(pack_string(name) + sizes + struct.pack("<iQ", TENSOR_F32, offset))
        offset += tensor.nbytes + len(padding(tensor.nbytes))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(pack_pair(*entry) for entry in metadata) + b"".join(infos)
    with open(path, "wb") as file:
        file.write(head + padding(len(head)))
        for tensor in tensors.values():
            file.write(tensor.astype("<f4").tobytes() + padding(tensor.nbytes))


def main():
    parser = argparse.ArgumentParser(description="write the trained model as an F32 GGUF")
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    with open(options.vocab) as file:
        vocab = json.load(file)
    write_gguf(
        options.out, model_metadata(Shape()) + vocab_metadata(vocab), load_tensors(options.weights)
    )


if __name__ == "__main__":
    main()
