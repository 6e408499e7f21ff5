# One product in many launches.
width = 1020
load common.'style.gp'
set logscale x 2
set yrange [0:*]
set xlabel 'launches that the 576x576 product is split into'
set ylabel 'us for the whole product (GPU, chained; bars are quartiles)'
set xtics (1, 2, 4, 8, 16, 32, 72)
set title 'One 576x576 Q4_0 product in 1 to 72 launches'
set key outside right top Left reverse
variants = 'serial overlapping'
plot for [f=1:files] for [k=1:2] file(f) \
    using (where('variant', word(variants, k), column('launches') * (1 + 0.02 * (k - 1)))):(1e-3 * column('gpu_ns')):(1e-3 * column('gpu_q1_ns')):(1e-3 * column('gpu_q3_ns')) \
    with yerrorlines lt k dt dash(f, k) title once(f, word(variants, k))
