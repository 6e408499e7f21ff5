# tests: numbers of several models in tests that have nothing between them: a point for each, side by side in the
# column of its test, and no line. Given: tests and list (the models), test_column (that names them), score(k),
# name_of(text), tic_of(i) and above_text. seen = reach(1) before draws a line at 1.
n = items(list)
tests_n = items(tests)
do for [f=1:files] { do for [k=1:n] { stats file(f) using (reach(score(k))) nooutput } }
y_log = 1
y_lo = low / 1.3
y_hi = high * 1.3
set rmargin at screen 1 - 190.0 / width
set logscale y
set xrange [0.5:tests_n + 0.5]
set yrange [y_lo:y_hi]
set grid noxtics ytics
set xtics scale 0 ('' 0)
# Many names need two lines.
set for [i=1:tests_n] xtics add ((tests_n > 8 && i % 2 == 0 ? "\n" : '').tic_of(i) i)
do for [i=1:tests_n - 1] { set arrow 200 + i from first i + 0.5, graph 0 to first i + 0.5, graph 1 nohead lw 0.7 lc rgb '#B0B0B0' back }
if (exists("seen")) { set arrow 200 from graph 0, first 1 to graph 1, first 1 nohead lw 1.5 lc rgb '#404040' back }
set label 996 above_text.', log scale' @above
load common.'ends.gp' # the marks of the axis
mark(k) = int(word('7 5 9 11 13 6 4 8 10 12 14', 1 + (k - 1) % 11))
place(k) = at(tests, strcol(test_column)) + 0.84 * (k - 0.5 * (n + 1)) / n
# All in one column, however low the chart is.
room = (height - head - 114.0 - 16 * footer_lines) / (n + 1) / 20
set key at screen 1 - 180.0 / width, graph 1 left top Left reverse samplen 1 maxcols 1 spacing (room < 1.5 ? room : 1.5)
plot for [f=1:files] for [k=1:n] file(f) using (place(k)):(score(k)) \
    with points pt mark(k) ps (f == 1 ? 1.1 : 0.6) lc rgb hue(k) title once(f, name_of(item(list, k)))
