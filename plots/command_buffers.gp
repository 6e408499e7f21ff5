# Tokens per second by number of command buffers.
heading = 'Decoding with one command buffer per token, per layer, per third of one and per launch'
ways = 'token layer third launch'
captions = '"per token" "per layer" "per third of a layer" "per launch"'
load common.'bars.gp'
