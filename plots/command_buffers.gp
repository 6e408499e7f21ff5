# Tokens per second by number of command buffers.
heading = 'Decoding with one command buffer a token, a layer and a launch'
ways = 'token layer launch rwkv7'
captions = '"1 a token" "1 a layer" "1 a launch" "RWKV-7: no runner yet"'
load common.'bars.gp'
