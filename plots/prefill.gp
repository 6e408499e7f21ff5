# A prompt read in one pass and token by token.
subtitle = 'Wall clock until the logits are known; bars are quartiles'
load common.'style.gp'
variants = 'prompt token_by_token'
names = '"in one pass" "token by token"'
do for [k=1:2] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(where('variant', word(variants, k), column('tokens')), column('tok_s'))) nooutput }
    name_end = word(names, k)
    end_hue = hue(k)
    load common.'end.gp'
}
y_log = 1
y_lo = low / 1.5
y_hi = high * 1.5
set yrange [y_lo:y_hi]
set rmargin at screen 1 - 140.0 / width
set logscale xy
set xrange [least_x / 1.1:most_x * 1.1]
set format y '%g'
set xlabel 'tokens in the prompt, log scale'
set label 996 'tokens per second, log scale' @above
set xtics (4, 8, 16, 32, 64, 128, 256, 512)
set key off
load common.'ends.gp'
plot for [f=1:files] for [k=1:2] file(f) \
    using (where('variant', word(variants, k), column('tokens'))):(column('tok_s')):(1e9 * column('tokens') / column('wall_q3_ns')):(1e9 * column('tokens') / column('wall_q1_ns')) \
    with yerrorlines lt k dt dash(f, 1)
