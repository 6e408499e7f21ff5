# Tokens per second with one idea more in each bar, and what that idea adds.
ways = 'separate argmax private fused one_buffer async'
captions = "\"separate\nlaunches\" \"+ argmax\non the GPU\" \"+ private\nscratch\" \"+ fused\nlaunches\" \"+ one command\nbuffer\" \"+ 4 tokens\nin flight\""
below = 'step_gain_pct'
subtitle = 'Each bar has one idea more than the bar before it; percents: what it adds (median of paired ratios)'
load common.'bars.gp'
