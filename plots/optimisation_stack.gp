# Tokens per second with one idea more in each bar, and what that idea adds.
heading = 'The optimisation stack: each bar has one idea more than the bar before it'
ways = 'separate argmax private fused one_buffer async'
captions = "\"separate\nlaunches\" \"+ argmax\non the GPU\" \"+ private\nscratch\" \"+ fused\nlaunches\" \"+ one command\nbuffer\" \"+ 4 tokens\nin flight\""
below = 'step_gain_pct'
set xlabel 'ideas, each on top of those before it; percents: what it adds (median of paired ratios)' offset 0,-0.5
load common.'bars.gp'
