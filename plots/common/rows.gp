# rows: the GPU time of every row, with quartiles. For results that have no script of their own, such as
# those of bench; rows of several devices stand below each other.
set datafile separator comma
set datafile columnheaders
rows = 0
do for [f=1:files] {
    stats word(csv, f) using (column('n') > 0 ? column('gpu_ns') : NaN) nooutput
    rows = rows + (exists("STATS_records") ? STATS_records : 0)
}
width = 1150
height = 190 + 17 * rows
load common.'style.gp'
set lmargin at screen 0.42
set rmargin at screen 0.96
set tmargin at screen 1 - 50.0 / height
set logscale x
set format x '%g'
set xlabel 'us on the GPU clock (bars are quartiles)'
set yrange [rows + 0.7:0.3]
set ytics font ',10'
set title 'Times of all rows'
set key off
if (files > 1) set key at screen 0.02, 1 - 20.0 / height left top Left reverse
y = 0
place(is_timed) = is_timed ? (y = y + 1, y) : NaN
plot for [f=1:files] file(f) using (column('n') > 0 ? 1e-3 * column('gpu_ns') : NaN):(place(column('n') > 0)):(1e-3 * column('gpu_q1_ns')):(1e-3 * column('gpu_q3_ns')):ytic(strcol('case')) \
    with xerrorbars lt f dt 1 title word(titles, f)
