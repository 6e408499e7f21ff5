# Bandwidth of small matrices, as published (alone, wall clock) and without the fixed cost.
subtitle = 'Q4_0 products with 192 to 49152 rows of 576, cold'
load common.'style.gp'
set rmargin at screen 1 - 190.0 / width
of(variant) = where('variant', variant, column('bytes') * 1e-6)
series = 'alone alone chained chained'
values = 'gb_s_wall gb_s gb_s roof_gb_s'
names = '"alone, wall clock" "alone, GPU clock" "in a chain, GPU clock" "measured roof"'
array line[4] = [2, 3, 1, 8]
do for [k=1:4] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(of(word(series, k)), column(word(values, k)))) nooutput }
    name_end = word(names, k)
    end_hue = hue(line[k])
    load common.'end.gp'
}
y_log = 1
y_lo = low / 1.8
y_hi = high * 1.5
set logscale xy
set xlabel 'MB (10^6 bytes) moved per product, log scale'
set label 996 'GB/s, log scale' @above
set format x '%g'
set format y '%g'
set key off
set xrange [least_x / 1.4:most_x * 1.4]
set yrange [y_lo:y_hi]
set label 1 '192x576' at 0.065, graph 0.03 center font small
set label 2 '1536x576' at 0.5, graph 0.03 center font small
set label 3 '49152x576' at 19, graph 0.03 right font small
load common.'ends.gp'
plot for [f=1:files] for [k=1:3] file(f) using (of(word(series, k))):(column(word(values, k))) \
    smooth unique with linespoints lt line[k] dt dash(f, 1), \
    for [f=1:files] file(f) using (of('chained')):(column('roof_gb_s')) smooth unique with lines lc rgb hue(8) dt 3 lw 2
