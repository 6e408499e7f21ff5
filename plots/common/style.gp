# style: what all charts share. Given are csv, titles, files, footer, footer_lines, out and format; a script may set
# width and height before.
if (!exists("width")) width = 900
if (!exists("height")) height = 540

if (format eq 'svg') set terminal svg size width,height noenhanced font 'Helvetica,13' background rgb 'white'
if (format eq 'png') set terminal pngcairo size width,height noenhanced font 'sans,10' background rgb 'white'
set output out

set datafile separator comma
set datafile columnheaders
set datafile missing NaN

# Okabe-Ito without the yellow, which is lost on white.
set linetype 1 lc rgb '#0072B2' pt 7 dt 1 lw 2 ps 1.0
set linetype 2 lc rgb '#D55E00' pt 5 dt 2 lw 2 ps 0.9
set linetype 3 lc rgb '#009E73' pt 9 dt 4 lw 2 ps 1.1
set linetype 4 lc rgb '#CC79A7' pt 11 dt 5 lw 2 ps 1.1
set linetype 5 lc rgb '#E69F00' pt 13 dt 3 lw 2 ps 1.2
set linetype 6 lc rgb '#56B4E9' pt 6 dt 1 lw 2 ps 1.0
set linetype 7 lc rgb '#000000' pt 4 dt 2 lw 2 ps 0.9
set linetype 8 lc rgb '#7F7F7F' pt 8 dt 4 lw 2 ps 1.1
set linetype 9 lc rgb '#0072B2' pt 2 dt 3 lw 2 ps 1.0
set linetype 10 lc rgb '#D55E00' pt 1 dt 5 lw 2 ps 1.0
set linetype 11 lc rgb '#009E73' pt 3 dt 2 lw 2 ps 1.0
set linetype 12 lc rgb '#CC79A7' pt 12 dt 1 lw 2 ps 1.2
set linetype cycle 12

set grid back lt 1 dt 1 lw 0.6 lc rgb '#C4C4C4'
set border 3 lc rgb '#404040'
set tics nomirror out
set key samplen 3 spacing 1.15 width 1
bottom = (90 + 15 * (footer_lines - 1)) / (1.0 * height)
set bmargin at screen bottom
set tmargin at screen 0.89
set label 999 footer at screen 0.012, 14.0 / height + 15.0 * (footer_lines - 1) / height left font ',10' textcolor rgb '#404040'

file(i) = word(csv, i)
# Dashes tell devices apart if there are several (the footer says which is which), otherwise series.
dash(f, k) = files > 1 ? f : 1 + (k - 1) % 5
# A series is named once, for the first device.
once(f, text) = f == 1 ? text : ''

# The number where a column has the given text, else NaN.
where(name, text, value) = strcol(name) eq text ? value : NaN

# The different texts of a column in the order in which they come: list = ''; stats ... using (add(...))
add(text) = strstrt(list, '|' . text . '|') ? 0 : (list = (list eq '' ? '|' : list) . text . '|', 0)
items(l) = l eq '' ? 0 : (n_items = 0, sum [c=2:strlen(l)] (substr(l, c, c) eq '|' ? 1 : 0))
rest(l) = substr(l, strstrt(substr(l, 2, strlen(l)), '|') + 1, strlen(l))
first(l) = substr(l, 2, strstrt(substr(l, 2, strlen(l)), '|'))
item(l, i) = i <= 1 ? first(l) : item(rest(l), i - 1)
# The position of a text in a list.
at(l, text) = first(l) eq text ? 1 : strlen(rest(l)) <= 1 ? NaN : 1 + at(rest(l), text)
