#!/bin/sh
# Makes the small model from nothing: vocabulary, training, F32 GGUF.
# Usage: run.sh FOLDER [options of train.py]
set -eu
folder=$1
shift
tools=$(dirname "$0")
mkdir -p "$folder"
python3 "$tools/bpe.py" --out "$folder/vocab.json"
python3 "$tools/train.py" --vocab "$folder/vocab.json" --out "$folder/weights.npz" "$@"
python3 "$tools/export.py" --vocab "$folder/vocab.json" --weights "$folder/weights.npz" \
    --out "$folder/assay-tiny-f32.gguf"
