# A prompt read in one pass and token by token.
width = 1020
load common.'style.gp'
set logscale xy 2
set xrange [3.4:*]
set format y '%g'
set xlabel 'tokens in the prompt'
set ylabel 'tokens per second (bars are quartiles)'
set xtics (4, 8, 16, 32, 64, 128, 256, 512)
set title 'Reading a prompt: in one pass and token by token'
set key outside right top Left reverse
variants = 'prompt token_by_token'
plot for [f=1:files] for [k=1:2] file(f) \
    using (where('variant', word(variants, k), column('tokens'))):(column('tok_s')):(1e9 * column('tokens') / column('wall_q3_ns')):(1e9 * column('tokens') / column('wall_q1_ns')) \
    with yerrorlines lt k dt dash(f, k) title once(f, (k == 1 ? 'one pass' : 'token by token'))
