# Tokens per second with private and with shared scratch.
ways = 'private shared'
captions = '"private scratch" "shared scratch"'
load common.'bars.gp'
