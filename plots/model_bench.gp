# Whole models by `assay model bench`: tokens per second of prompts (pp) and of writing (tg), by model.
subtitle = 'pp: a prompt of so many tokens, tg: so many tokens written, @d: after so many tokens; GPU clock'
load common.'style.gp'
list = ''
do for [f=1:files] { stats file(f) using (add(strcol('variant'))) nooutput }
tests = list
list = ''
do for [f=1:files] { stats file(f) using (add(strcol('model').', '.strcol('format'))) nooutput }
# 'random weights in the shape of 7b, seed 1' is 7b.
prefix = 'random weights in the shape of '
if (strstrt(list, prefix)) { set label 998 subtitle.'; random weights' }
name_of(text) = strstrt(text, prefix) == 1 ? substr(text, strlen(prefix) + 1, strlen(text)) : text
# 'tg32@d512' has 32 tokens.
end_of(test) = strstrt(test, '@') ? strstrt(test, '@') - 1 : strlen(test)
tokens(test) = substr(test, 3, end_of(test)) + 0
# Beside a test of the same tokens only the depth: there is no room for more.
is_deeper(i) = i > 1 && end_of(item(tests, i)) < strlen(item(tests, i)) && \
    tokens(item(tests, i)) == tokens(item(tests, i - 1))
tic_of(i) = is_deeper(i) ? substr(item(tests, i), end_of(item(tests, i)) + 1, 99) : item(tests, i)
rate(k) = strcol('model').', '.strcol('format') eq item(list, k) && column('n') > 0 ? \
    1e9 * tokens(strcol('variant')) / column('gpu_ns') : NaN
do for [k=1:items(list)] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(at(tests, strcol('variant')), rate(k))) nooutput }
    name_end = name_of(item(list, k))
    end_hue = hue(k)
    load common.'end.gp'
}
y_log = 1
y_lo = low / 1.5
y_hi = high * 1.5
set rmargin at screen 1 - 200.0 / width
set logscale y
set xrange [0.7:items(tests) + 0.2]
set yrange [y_lo:y_hi]
set format y '%.0f'
set xtics ('' 0)
set for [i=1:items(tests)] xtics add (tic_of(i) i)
set label 996 'tokens per second' @above
set key off
load common.'ends.gp'
plot for [f=1:files] for [k=1:items(list)] file(f) using (at(tests, strcol('variant'))):(rate(k)) \
    with linespoints lt k dt 3 lw 1 ps (f == 1 ? 1 : 0.6)
