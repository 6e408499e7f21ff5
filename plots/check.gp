# How close the errors of the checked cases come to their tolerance.
subtitle = 'Cases of each kind, sorted by their largest error; cases without any error are left out'
load common.'style.gp'
kinds = 'matvec attention norm rope other'
kind(op) = strstrt(op, 'norm') ? 'norm' : strstrt(op, 'matvec') ? 'matvec' : strstrt(op, 'attention') ? 'attention' : strstrt(op, 'rope') ? 'rope' : 'other'
# The axis begins at a ten-thousandth: what is below is drawn there.
margin_of(k) = kind(strcol('op')) eq word(kinds, k) && column('margin') > 0 ? (column('margin') > 0.0001 ? column('margin') : 0.0001) : NaN
most = 2
do for [f=1:files] {
    stats file(f) using (column('margin')) nooutput
    most = 1.2 * STATS_max > most ? 1.2 * STATS_max : most
}
set rmargin at screen 1 - 40.0 / width
set format x '%g'
set xlabel 'largest error of a case divided by its tolerance (above 1 is wrong), log scale'
set label 996 '% of the cases with a smaller error' @above
set arrow from 1, graph 0 to 1, graph 1 nohead lc rgb '#000000' lw 1.5
set label 'tolerance ' at 1, graph 0.04 right font small
# Each kind is named at its curve, where a quarter, half or three quarters of its cases are.
set style textbox opaque noborder fillcolor rgb 'white' margins 0.3, 0.3
do for [k=1:words(kinds)] {
    stats file(1) using (margin_of(k)) nooutput
    if (exists("STATS_records") ? STATS_records > 0 : 0) { # gnuplot forgets it where no case has an error
        spot = k == 1 ? STATS_median : k < 4 ? STATS_up_quartile : STATS_lo_quartile
        rise = k == 1 ? 0.5 : k < 4 ? 0.75 : 0.25
        set label 10 + k word(kinds, k) at spot, rise center boxed font small textcolor rgb hue(k) front
    }
}
set logscale x
set xrange [0.0001:most]
set xtics ('up to 0.0001' 0.0001)
set for [d=-3:3] xtics add (sprintf('%g', 10.0 ** d) 10.0 ** d)
set yrange [0:1.02]
set ytics ('0' 0, '25' 0.25, '50' 0.5, '75' 0.75, '100' 1)
set key off
plot for [f=1:files] for [k=1:words(kinds)] file(f) using (margin_of(k)):(1) \
    smooth cnormal with lines lt k dt dash(f, 1) lw 2.5
