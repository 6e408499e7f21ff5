# Bandwidth of small matrices, as published (alone, wall clock) and without the fixed cost.
width = 1050
load common.'style.gp'
set logscale xy
set xlabel 'bytes moved per product, MB (10^6)'
set ylabel 'GB/s'
set format x '%g'
set format y '%g'
set title 'Q4_0 products with 192 to 49152 rows of 576, cold: a fixed cost is not bandwidth'
set key outside right top Left reverse
set xrange [0.04:25]
set label 1 '192x576' at 0.065, graph 0.02 center font ',10'
set label 2 '1536x576' at 0.5, graph 0.02 center font ',10'
set label 3 '49152x576' at 16, graph 0.02 center font ',10'
plot for [f=1:files] file(f) using (where('variant', 'alone', column('bytes') * 1e-6)):(column('gb_s_wall')) \
    smooth unique with linespoints lt 2 dt f title once(f, 'alone, wall clock (as published)'), \
    for [f=1:files] file(f) using (where('variant', 'alone', column('bytes') * 1e-6)):(column('gb_s')) \
    smooth unique with linespoints lt 3 dt f title once(f, 'alone, GPU clock'), \
    for [f=1:files] file(f) using (where('variant', 'chained', column('bytes') * 1e-6)):(column('gb_s')) \
    smooth unique with linespoints lt 1 dt f title once(f, 'in a chain, GPU clock'), \
    for [f=1:files] file(f) using (where('variant', 'chained', column('bytes') * 1e-6)):(column('roof_gb_s')) \
    smooth unique with lines lc rgb '#808080' dt 3 lw 2 title once(f, 'measured roof')
