# ends: writes the names of series beside the last point of each, moved apart where they would overlap (gap is a
# line's height as a part of the chart's). Given: y_lo, y_hi and y_log; see style.gp.
if (!exists("gap")) gap = 0.055
share(y) = y_log ? (log(y) - log(y_lo)) / (log(y_hi) - log(y_lo)) : (y - y_lo) / (y_hi - y_lo)
array order[40]
do for [i=1:ends] {
    end_at[i] = share(end_y[i])
    order[i] = i
}
do for [i=1:ends] {
    do for [j=1:ends-1] {
        if (end_at[order[j]] > end_at[order[j + 1]]) {
            swap = order[j]
            order[j] = order[j + 1]
            order[j + 1] = swap
        }
    }
}
do for [pass=1:80] {
    do for [j=1:ends-1] {
        lack = gap - (end_at[order[j + 1]] - end_at[order[j]])
        if (lack > 0) {
            end_at[order[j]] = end_at[order[j]] - 0.5 * lack
            end_at[order[j + 1]] = end_at[order[j + 1]] + 0.5 * lack
        }
    }
}
# None leaves the chart at its top or bottom.
if (ends > 0) {
    over = end_at[order[ends]] - 1.0
    under = 0.02 - end_at[order[1]]
    do for [i=1:ends] { end_at[i] = end_at[i] - (over > 0 ? over : 0) + (under > 0 ? under : 0) }
}
do for [i=1:ends] {
    set arrow 100 + i from first end_x[i], first end_y[i] to graph 1.035, graph end_at[i] nohead lw 0.7 lc rgb '#909090' back
    set label 100 + i end_text[i] at graph 1.045, graph end_at[i] left font small textcolor rgb end_colour[i]
}
# A range with few powers of ten has marks between them.
if (y_log && y_hi / y_lo < 300) {
    set ytics ('' 1e-30)
    set for [d=-3:6] for [k=0:2] ytics add (sprintf('%g', (1 + k * k) * 10.0 ** d) (1 + k * k) * 10.0 ** d)
}
