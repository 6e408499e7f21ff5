# Tokens per second with private and with shared scratch.
heading = 'Decoding with private and with shared scratch memory'
ways = 'private shared'
captions = '"private scratch" "shared scratch"'
load style[1:strlen(style) - strlen('style.gp')].'bars.gp'
