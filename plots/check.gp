# How close the errors of the checked cases come to their tolerance.
load common.'style.gp'
kinds = 'matvec attention norm rope other'
kind(op) = strstrt(op, 'norm') ? 'norm' : strstrt(op, 'matvec') ? 'matvec' : strstrt(op, 'attention') ? 'attention' : strstrt(op, 'rope') ? 'rope' : 'other'
set logscale x
set format x '%g'
set xrange [1e-4:2]
set yrange [0:1.02]
set xlabel 'largest error of a case divided by its tolerance (above 1 is wrong)'
set ylabel 'fraction of the cases'
set title 'Errors of all checked cases against their tolerance'
set key outside right top Left reverse
set arrow from 1, graph 0 to 1, graph 1 nohead lc rgb '#000000' lw 1.5
floor_(x) = x > 1e-4 ? x : 1e-4
plot for [f=1:files] for [k=1:words(kinds)] file(f) \
    using (kind(strcol('op')) eq word(kinds, k) ? floor_(column('margin')) : NaN):(1) \
    smooth cnormal with lines lt k dt k lw 2.5 title once(f, word(kinds, k))
