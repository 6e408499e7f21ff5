# Bandwidth by size, with the steps of the caches; and by number of threads.
subtitle = 'GPU clock, launches in a chain, the same buffers each time (warm)'
height = 600
load common.'style.gp'
set multiplot layout 1,2
set key off
set label 996 'GB/s, log scale' @above
set logscale xy
set format y '%g'
y_log = 1
gap = 0.05

list = ''
stats file(1) using (strcol('sweep') eq 'size' ? add(strcol('variant')) : 0) nooutput
of_size(k) = strcol('sweep') eq 'size' ? where('variant', item(list, k), column('size_mb')) : NaN
do for [k=1:items(list)] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(of_size(k), column('gb_s'))) nooutput }
    name_end = item(list, k)
    end_hue = hue(k)
    load common.'end.gp'
}
y_lo = low / 1.5
y_hi = high * 1.6
set lmargin at screen 60.0 / width
set rmargin at screen 0.42
set xlabel 'MB (10^6 bytes) moved per launch, log scale'
set xrange [least_x * 0.8:most_x * 1.2]
set yrange [y_lo:y_hi]
set xtics ('0.25' 0.25, '1' 1, '4' 4, '16' 16, '64' 64, '256' 256, '1024' 1024)
if (exists("m_cache_step_mb")) {
    set arrow 1 from m_cache_step_mb, graph 0 to m_cache_step_mb, graph 1 nohead dt 3 lw 2 lc rgb '#404040'
    set label 1 sprintf('last cache ends: %s MB ', show(m_cache_step_mb)) at m_cache_step_mb, graph 0.04 right font small
}
load common.'ends.gp'
plot for [f=1:files] for [k=1:items(list)] file(f) using (of_size(k)):(column('gb_s')) \
    with linespoints lt k dt dash(f, 1)

load common.'again.gp'
set label 996 'GB/s, log scale' @above
list = ''
stats file(1) using (strcol('sweep') eq 'occupancy' ? add(strcol('variant')) : 0) nooutput
of_threads(k) = strcol('sweep') eq 'occupancy' ? where('variant', item(list, k), column('threads')) : NaN
colour(k) = item(list, k) eq 'read_q4_0' ? 3 : k
do for [k=1:items(list)] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(of_threads(k), column('gb_s'))) nooutput }
    name_end = item(list, k)
    end_hue = hue(colour(k))
    load common.'end.gp'
}
y_lo = low / 1.5
y_hi = high * 1.6
set yrange [y_lo:y_hi]
set lmargin at screen 0.615
set rmargin at screen 1 - 100.0 / width
set xlabel 'threads, log scale'
set xtics (32, '' 256, '1 K' 1024, '' 4096, '16 K' 16384, '' 65536, '256 K' 262144)
set xrange [least_x * 0.75:most_x * 1.5]
load common.'ends.gp'
plot for [f=1:files] for [k=1:items(list)] file(f) using (of_threads(k)):(column('gb_s')) \
    with linespoints lt colour(k) dt dash(f, 1)
unset multiplot
