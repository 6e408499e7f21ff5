# Tokens per second by length of the run and context.
width = 1020
load common.'style.gp'
list = ''
stats file(1) using (add(strcol('context'))) nooutput
contexts = list
list = ''
stats file(1) using (add(strcol('tokens'))) nooutput
n = items(list)
set yrange [0:*]
set xrange [0.5:items(contexts) + 0.5]
set xlabel 'tokens already in the cache'
set xtics nomirror out ('' 0)
set for [i=1:items(contexts)] xtics add (item(contexts, i) i)
set ylabel 'tokens per second (bars are quartiles)'
set title 'Writing text, token by token'
set key outside right top Left reverse
beside(k) = 0.12 * (k - 0.5 * (n + 1))
plot for [f=1:files] for [k=1:n] file(f) \
    using (where('tokens', item(list, k), at(contexts, strcol('context')) + beside(k))):(column('tok_s')):(1e9 / column('wall_q3_ns')):(1e9 / column('wall_q1_ns')) \
    with yerrorlines lt k dt dash(f, k) title once(f, 'first '.item(list, k).' tokens')
