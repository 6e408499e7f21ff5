# Tokens per second with private and with shared scratch.
heading = 'Decoding with private and with shared scratch memory'
ways = 'private shared'
captions = '"private scratch" "shared scratch"'
load common.'bars.gp'
