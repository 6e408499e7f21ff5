# Tokens per second by number of command buffers.
ways = 'token layer third launch'
captions = '"per token" "per layer" "per third of a layer" "per launch"'
load common.'bars.gp'
