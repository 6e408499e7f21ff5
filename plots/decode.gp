# Tokens per second by length of the run and context.
width = 1020
load common.'style.gp'
list = ''
stats file(1) using (add(strcol('tokens'))) nooutput
set yrange [0:*]
set xlabel 'tokens already in the cache'
set ylabel 'tokens per second (bars are quartiles)'
set title 'Writing text, token by token'
set key outside right top Left reverse
set offsets graph 0.05, graph 0.05, 0, 0
plot for [f=1:files] for [k=1:items(list)] file(f) \
    using (where('tokens', item(list, k), column('context'))):(column('tok_s')):(1e9 / column('wall_q3_ns')):(1e9 / column('wall_q1_ns')) \
    with yerrorlines lt k dt dash(f, k) title once(f, 'first '.item(list, k).' tokens')
