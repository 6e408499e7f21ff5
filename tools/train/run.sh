#!/bin/sh
# Makes a small model from nothing: vocabulary, training, F32 GGUF.
# Usage: run.sh FAMILY FOLDER [options of train.py]
set -eu
family=$1
folder=$2
shift 2
tools=$(dirname "$0")
mkdir -p "$folder"
if [ "$family" = llama ]; then
    python3 "$tools/bpe.py" --out "$folder/vocab.json"
else
    python3 "$tools/bpe.py" --gguf "$tools/../../models/assay-tiny.gguf" --out "$folder/vocab.json"
    python3 "$tools/wkv7.py"
fi
python3 "$tools/train.py" --family "$family" --vocab "$folder/vocab.json" \
    --out "$folder/weights.npz" "$@"
python3 "$tools/export.py" --family "$family" --vocab "$folder/vocab.json" \
    --weights "$folder/weights.npz" --out "$folder/$family-f32.gguf"
