# Tokens per second of RWKV-7 by number of command buffers.
heading = 'RWKV-7 with one command buffer per token, per layer and per launch'
ways = 'token layer launch'
captions = '"per token" "per layer" "per launch"'
load common.'bars.gp'
