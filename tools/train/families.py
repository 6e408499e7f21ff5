"""The architectures: a module of each name gives Shape, Model, metadata and tensors."""

import importlib

NAMES = ("llama", "rwkv7")


def load(name):
    return importlib.import_module(name)
