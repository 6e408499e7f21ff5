# What a launch costs: the time of command buffers of n launches, and the share of one.
subtitle = 'Command buffers of empty launches, each submitted and waited for'
height = 580
load common.'style.gp'
set multiplot layout 1,2
set logscale xy
set xlabel 'launches in a command buffer, log scale'
set xtics (1, 10, '' 30, 100, '302' 302, 1000)
variants = 'chain independent sorted alternating'
names = '"chain" "independent" "sorted" "alternating"'
set format y '%g'
set key off
y_log = 1
gap = 0.05
of(k) = where('variant', word(variants, k), column('launches'))

do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(of(1), 1e-3 * column('wall_ns'))) nooutput }
name_end = 'chain, wall clock'
end_hue = hue(7)
load common.'end.gp'
do for [k=1:4] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(of(k), 1e-3 * column('gpu_ns'))) nooutput }
    name_end = word(names, k).', GPU'
    end_hue = hue(k)
    load common.'end.gp'
}
y_lo = low / 1.5
y_hi = high * 1.5
set yrange [y_lo:y_hi]
set xrange [least_x * 0.9:most_x * 1.1]
set lmargin at screen 60.0 / width
set rmargin at screen 0.385
set label 996 'µs per command buffer, log scale' @above
load common.'ends.gp'
plot for [f=1:files] for [k=1:4] file(f) using (of(k)):(1e-3 * column('gpu_ns')) with linespoints lt k dt dash(f, 1), \
    for [f=1:files] file(f) using (of(1)):(1e-3 * column('wall_ns')) with linespoints lt 7 dt dash(f, 1)

load common.'again.gp'
do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(of(1), 1e-3 * column('wall_ns') / column('launches'))) nooutput }
name_end = 'chain, wall'
end_hue = hue(7)
load common.'end.gp'
do for [k=1:4] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(of(k), 1e-3 * column('gpu_ns') / column('launches'))) nooutput }
    name_end = word(names, k)
    end_hue = hue(k)
    load common.'end.gp'
}
y_lo = low / 1.5
y_hi = high * 1.5
set yrange [y_lo:y_hi]
set xrange [least_x * 0.9:most_x * 1.1]
set lmargin at screen 0.635
set rmargin at screen 1 - 96.0 / width
set label 996 'µs per launch, log scale' @above
load common.'ends.gp'
plot for [f=1:files] for [k=1:4] file(f) using (of(k)):(1e-3 * column('gpu_ns') / column('launches')) with linespoints lt k dt dash(f, 1), \
    for [f=1:files] file(f) using (of(1)):(1e-3 * column('wall_ns') / column('launches')) with linespoints lt 7 dt dash(f, 1)
unset multiplot
