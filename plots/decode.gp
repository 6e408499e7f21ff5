# Tokens per second by length of the run and context.
subtitle = 'Greedy decoding, token by token, wall clock; bars are quartiles'
load common.'style.gp'
list = ''
stats file(1) using (add(strcol('tokens'))) nooutput
n = items(list)
deepest = 0
do for [k=1:n] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(where('tokens', item(list, k), column('context')), column('tok_s'))) nooutput }
    if (last_x > deepest) { deepest = last_x }
    name_end = item(list, k) eq '1' ? 'first token' : 'first '.item(list, k).' tokens'
    end_hue = hue(k)
    load common.'end.gp'
}
do for [f=1:files] { stats file(f) using (reach(1e9 / column('wall_q1_ns'))) nooutput }
list_c = list
list = ''
stats file(1) using (add(strcol('context'))) nooutput
contexts = list
list = list_c
y_log = 0
y_lo = 0
y_hi = high * 1.05
set yrange [y_lo:y_hi]
set rmargin at screen 1 - 150.0 / width
set xrange [-0.03 * (deepest > 0 ? deepest : 1):(deepest > 0 ? deepest : 1) * 1.02]
set xtics (0)
set for [i=1:items(contexts)] xtics add (item(contexts, i) real(item(contexts, i)))
set xlabel 'tokens already in the context'
set label 996 'tokens per second' @above
set key off
load common.'ends.gp'
plot for [f=1:files] for [k=1:n] file(f) \
    using (where('tokens', item(list, k), column('context'))):(column('tok_s')):(1e9 / column('wall_q3_ns')):(1e9 / column('wall_q1_ns')) \
    with yerrorlines lt k dt dash(f, 1)
