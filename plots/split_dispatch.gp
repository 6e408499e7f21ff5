# One product in many launches.
subtitle = 'One 576x576 Q4_0 product split into launches; GPU clock, chained, warm; bars are quartiles'
load common.'style.gp'
variants = 'serial overlapping'
names = '"one after the other" "free to overlap"'
do for [k=1:2] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(where('variant', word(variants, k), column('launches')), 1e-3 * column('gpu_ns'))) nooutput }
    name_end = word(names, k)
    end_hue = hue(k)
    load common.'end.gp'
}
y_log = 1
y_lo = low / 1.5
y_hi = high * 1.5
set rmargin at screen 1 - 175.0 / width
set logscale xy
set xrange [least_x * 0.9:most_x * 1.1]
set yrange [y_lo:y_hi]
set xlabel 'launches, log scale'
set label 996 'µs for the whole product, log scale' @above
set xtics (1, 2, 4, 8, 16, 32, 72)
set format y '%g'
load common.'ends.gp'
set key off
plot for [f=1:files] for [k=1:2] file(f) \
    using (where('variant', word(variants, k), column('launches'))):(1e-3 * column('gpu_ns')):(1e-3 * column('gpu_q1_ns')):(1e-3 * column('gpu_q3_ns')) \
    with yerrorlines lt k dt dash(f, 1)
