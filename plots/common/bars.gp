# bars: tokens per second of a few variants, with quartiles. Given: ways (their names), captions; and, if they have
# one, below: a column of percents to print below the numbers.
if (!exists("subtitle")) subtitle = 'Tokens per second, wall clock; bars: medians, whiskers: quartiles'
load common.'style.gp'
set rmargin at screen 1 - 20.0 / width
set yrange [0:*]
set label 996 'tokens per second' @above
set boxwidth 0.7 / files
set key inside right top
set offsets 0, 0, graph 0.06 + (files > 1 ? 0.08 * files : 0) + (exists("below") ? 0.06 : 0), 0
set style arrow 1 heads size screen 0.006,90 fixed lw 1.5 lc rgb '#000000'
if (files == 1) set key off
n = words(ways)
set xrange [0.4:n + 0.6]
set xtics nomirror out ('' 0) font ',13'
set for [i=1:n] xtics add (word(captions, i) i)
set grid noxtics ytics
place(f) = (f - 0.5 * (files + 1)) * 0.75 / files
# Numbers stand above the whiskers.
if (!exists('below')) below = ''
more(percent) = percent == percent ? sprintf(abs(percent) < 10 ? "\n%+.1f %%" : "\n%+.0f %%", percent) : ''
top_of(a, b) = b > a ? b : a
way(i, f, value) = strcol('variant') eq word(ways, i) ? value : NaN
plot for [f=1:files] for [i=1:n] file(f) using (way(i, f, i + place(f))):(column('tok_s')) \
    with boxes lt f dt 1 fs solid (f == 1 ? 0.75 : 0.3) noborder title (i == 1 ? word(titles, f) : ''), \
    for [f=1:files] for [i=1:n] file(f) using (way(i, f, i + place(f))):(1e9 / column('wall_q3_ns')):(0):(1e9 / column('wall_q1_ns') - 1e9 / column('wall_q3_ns')) \
    with vectors arrowstyle 1 notitle, \
    for [f=1:files] for [i=1:n] file(f) using (way(i, f, i + place(f))):(top_of(column('tok_s'), 1e9 / column('wall_q1_ns'))):(column('tok_s') > 0 ? show(column('tok_s')).(strlen(below) ? more(column(below)) : '') : '') \
    with labels offset 0,(strlen(below) ? 1.6 : 0.7) font ',13' notitle
