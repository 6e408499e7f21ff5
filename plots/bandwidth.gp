# Bandwidth by size, with the steps of the caches; and by number of threads.
width = 1150
load common.'style.gp'
set multiplot layout 1,2
set yrange [0:*]
set ylabel 'GB/s'
set logscale x
set xtics ('0.25' 0.25, '1' 1, '4' 4, '16' 16, '64' 64, '256' 256, '1024' 1024)

set lmargin at screen 0.065
set rmargin at screen 0.465
set title 'Bandwidth by buffer size (the same buffer each time)'
set xlabel 'bytes moved per launch, MB (10^6)'
if (exists("m_cache_step_mb")) {
    set arrow 1 from m_cache_step_mb, graph 0 to m_cache_step_mb, graph 1 nohead dt 3 lw 2 lc rgb '#404040'
    set xlabel sprintf('bytes moved by a launch, MB (10^6); dotted: the last cache ends at %.3g MB', m_cache_step_mb)
}
list = ''
stats file(1) using (strcol('sweep') eq 'size' ? add(strcol('variant')) : 0) nooutput
set key at screen 0.475, 0.89 left top Left reverse
plot for [f=1:files] for [k=1:items(list)] file(f) \
    using (strcol('sweep') eq 'size' ? where('variant', item(list, k), column('size_mb')) : NaN):(column('gb_s')) \
    with linespoints lt k dt dash(f, k) title once(f, item(list, k))

unset arrow 1
unset label 999
set lmargin at screen 0.69
set rmargin at screen 0.985
set title 'By number of threads'
set xlabel 'threads'
set logscale x 2
unset xtics
set xtics out nomirror (32, 256, 1024, '4 K' 4096, '16 K' 16384, '64 K' 65536, '256 K' 262144)
list = ''
stats file(1) using (strcol('sweep') eq 'occupancy' ? add(strcol('variant')) : 0) nooutput
set key at screen 0.475, 0.4 left top Left reverse
set xrange [24:400000]
plot for [f=1:files] for [k=1:items(list)] file(f) \
    using (strcol('sweep') eq 'occupancy' ? where('variant', item(list, k), column('threads')) : NaN):(column('gb_s')) \
    with linespoints lt (k == 1 ? 1 : 3) dt dash(f, k) title once(f, item(list, k))
unset multiplot
