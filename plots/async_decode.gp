# Tokens per second by steps in flight.
subtitle = 'Greedy decoding, wall clock; bars are quartiles'
load common.'style.gp'
set rmargin at screen 1 - 40.0 / width
set logscale x 2
set yrange [0:*]
set offsets 0, 0, graph 0.08, 0
do for [f=1:files] { stats file(f) using (see(column('in_flight'), column('tok_s'))) nooutput }
set xrange [least_x * 0.85:most_x * 1.18]
set xtics (1, 2, 4, 8)
set xlabel 'tokens in flight, log scale'
set label 996 'tokens per second' @above
set key horizontal at graph 1, graph 1.02 right bottom
if (files == 1) set key off
plot for [f=1:files] file(f) \
    using (column('in_flight')):(column('tok_s')):(1e9 / column('wall_q3_ns')):(1e9 / column('wall_q1_ns')) \
    with yerrorlines lt f title word(titles, f), \
    file(1) using (column('in_flight')):(column('tok_s')):(show(column('tok_s'))) with labels offset 0,1 font small notitle
