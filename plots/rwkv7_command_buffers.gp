# Tokens per second of an RWKV-7 by number of command buffers, and with its ops fused.
ways = 'op layer token fused'
captions = '"per op" "per layer" "per token" "per token, fused"'
load common.'bars.gp'
