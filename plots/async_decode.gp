# Tokens per second by steps in flight.
load common.'style.gp'
set logscale x 2
set yrange [0:*]
set xrange [0.8:10]
set xtics (1, 2, 4, 8)
set xlabel 'tokens in flight'
set ylabel 'tokens per second (bars are quartiles)'
set title 'Decoding with the CPU out of the loop'
set key right bottom
plot for [f=1:files] file(f) \
    using (column('in_flight')):(column('tok_s')):(1e9 / column('wall_q3_ns')):(1e9 / column('wall_q1_ns')) \
    with yerrorlines lt f title (files > 1 ? word(titles, f) : 'greedy tokens')
