# rows: all cases of a file, for results that have no script of their own, such as those of bench. Kernels
# that do the same (op, shape, regime, cache) stand together, the fastest on top: every sample is a dot,
# the line goes from quartile to quartile and the mark is the median. Given besides: samples (files, or "").
set datafile separator comma
set datafile columnheaders
rows = 0
do for [f=1:files] {
    stats word(csv, f) using (column('n') > 0 ? column('gpu_ns') : NaN) nooutput
    rows = rows + (exists("STATS_records") ? STATS_records : 0)
}
array name[rows]
array group[rows]
array owner[rows]
array median[rows]
array y[rows]
at_row = 0
note(is_timed, f) = is_timed ? (at_row = at_row + 1, name[at_row] = strcol('case'), owner[at_row] = f, \
    median[at_row] = column('gpu_ns'), \
    group[at_row] = strcol('op').'|'.strcol('shape').'|'.strcol('regime').'|'.strcol('cache'), 0) : 0
do for [f=1:files] { stats word(csv, f) using (note(column('n') > 0, f)) nooutput }
# A group is known by its first row.
first_of(i) = (found = 0, sum [j=1:rows] (found == 0 && group[j] eq group[i] ? (found = j, 0) : 0), found)
array known[rows]
do for [i=1:rows] { known[i] = first_of(i) }
is_before(j, i) = known[j] != known[i] ? known[j] < known[i] : \
    median[j] != median[i] ? median[j] < median[i] : j < i
do for [i=1:rows] { y[i] = 1 + (sum [j=1:rows] (is_before(j, i) ? 1 : 0)) }

# Room for the longest name, and the same for the rest of the chart.
longest = 0
do for [i=1:rows] { if (strlen(name[i]) > longest) { longest = strlen(name[i]) } }
names = longest > 60 ? 7.5 * longest + 33 : 483.0
width = 667 + names
height = 190 + 20 * rows
load common.'style.gp'
set lmargin at screen names / width
set rmargin at screen 1 - 46.0 / width
set tmargin at screen 1 - 50.0 / height
set logscale x
set format x '%g'
set xlabel 'us on the GPU clock (dots: samples; lines: quartiles; marks: medians)'
set yrange [rows + 0.7:0.3]
set ytics font ',10' ('' 0)
do for [i=1:rows] {
    set ytics add (name[i] y[i])
    if (known[i] == i && i > 1) {
        edge = rows + 1
        do for [j=1:rows] { if (known[j] == i && y[j] < edge) { edge = y[j] } }
        set arrow from graph 0, first edge - 0.5 to graph 1, first edge - 0.5 nohead lc rgb '#909090' lw 1
    }
}
set title 'Times of all cases, the fastest of each group on top'
set key off
if (files > 1) set key at screen 0.02, 1 - 20.0 / height left top Left reverse
# Rows and samples of a case follow each other: the place is looked up when the case changes.
last = ''
place = NaN
find(text, f) = (place = NaN, sum [j=1:rows] (owner[j] == f && name[j] eq text ? (place = y[j], 0) : 0), last = text, place)
place_of(text, f) = text.' '.f eq last ? place : (find(text, f), last = text.' '.f, place)
jitter(i) = 0.5 * (i * 0.61803 - floor(i * 0.61803)) - 0.25
has_samples = 1
do for [f=1:files] { if (word(samples, f) eq '') { has_samples = 0 } }
if (has_samples) {
    plot for [f=1:files] word(samples, f) using (1e-3 * column('gpu_ns')):(place_of(strcol('case'), f) + jitter(column('i'))) \
        with points pt 7 ps 0.25 lc rgb '#9AA5B1' notitle, \
        for [f=1:files] file(f) using (column('n') > 0 ? 1e-3 * column('gpu_ns') : NaN):(place_of(strcol('case'), f)):(1e-3 * column('gpu_q1_ns')):(1e-3 * column('gpu_q3_ns')) \
        with xerrorbars lt f dt 1 title word(titles, f)
} else {
    plot for [f=1:files] file(f) using (column('n') > 0 ? 1e-3 * column('gpu_ns') : NaN):(place_of(strcol('case'), f)):(1e-3 * column('gpu_q1_ns')):(1e-3 * column('gpu_q3_ns')) \
        with xerrorbars lt f dt 1 title word(titles, f)
}
