"""Reads and writes GGUF files, with NumPy alone.

Owns the container: metadata, tensor infos, data. Reads F32, F16, Q4_0, Q8_0 and Q6_K tensors; writes
F32. Tensors keep the order of their infos and each starts at a multiple of 32 bytes,
because readers reject anything else.
"""

import struct

import numpy as np

ALIGNMENT = 32
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    U32: "<I",
    I32: "<i",
    F32: "<f",
    BOOL: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
TENSOR_F32, TENSOR_F16, Q4_0, Q8_0, Q6_K = 0, 1, 2, 8, 14
BLOCKS = {TENSOR_F32: (1, 4), TENSOR_F16: (1, 2), Q4_0: (32, 18), Q8_0: (32, 34), Q6_K: (256, 210)}


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


class Reader:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 4
        _, tensor_count, pair_count = self.take("<I"), self.take("<Q"), self.take("<Q")
        self.pairs = dict(self.pair() for _ in range(pair_count))
        infos = [self.info() for _ in range(tensor_count)]
        start = self.at + -self.at % ALIGNMENT
        self.tensors = {
            name: self.tensor(shape, kind, start + offset) for name, shape, kind, offset in infos
        }

    def take(self, form):
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def string(self):
        length = self.take("<Q")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, count = self.take("<i"), self.take("<Q")
            return [self.value(kind) for _ in range(count)]
        return self.take(SCALARS[kind])

    def pair(self):
        return self.string(), self.value(self.take("<i"))

    def info(self):
        name = self.string()
        shape = [self.take("<Q") for _ in range(self.take("<I"))][::-1]
        return name, shape, self.take("<i"), self.take("<Q")

    def tensor(self, shape, kind, start):
        values, size = BLOCKS[kind]
        blocks = int(np.prod(shape)) // values
        raw = np.frombuffer(self.data, np.uint8, blocks * size, start).reshape(blocks, size)
        return expand(raw, kind).reshape(shape)


def expand(raw, kind):
    """Blocks to float32, one row per block."""
    if kind in (TENSOR_F32, TENSOR_F16):
        return raw.copy().view("<f4" if kind == TENSOR_F32 else "<f2").astype(np.float32)
    if kind == Q6_K:
        return expand_q6_k(raw)
    step = raw[:, :2].copy().view("<f2").astype(np.float32)
    if kind == Q8_0:
        return step * raw[:, 2:].copy().view(np.int8)
    levels = np.concatenate((raw[:, 2:] & 15, raw[:, 2:] >> 4), axis=1).astype(np.float32)
    return step * (levels - 8)


def expand_q6_k(raw):
    low, high = raw[:, :128].reshape(-1, 2, 64), raw[:, 128:192].reshape(-1, 2, 32)
    scales = raw[:, 192:208].copy().view(np.int8).astype(np.float32)
    step = raw[:, 208:].copy().view("<f2").astype(np.float32)
    fours = np.concatenate((low & 15, low >> 4), axis=2)
    twos = np.concatenate([(high >> shift) & 3 for shift in (0, 2, 4, 6)], axis=2)
    levels = (fours + 16 * twos).reshape(-1, 256).astype(np.float32) - 32
    return step * np.repeat(scales, 16, axis=1) * levels
