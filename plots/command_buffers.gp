# Tokens per second by number of command buffers.
heading = 'Decoding with one command buffer per token, per layer, per third of one and per launch'
ways = 'token layer third launch rwkv7'
captions = '"per token" "per layer" "per third of a layer" "per launch" "RWKV-7: no runner yet"'
load common.'bars.gp'
