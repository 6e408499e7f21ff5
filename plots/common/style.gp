# style: what all charts share. Given are csv, titles, files, finding, finding_lines, footer, footer_lines, out and
# format. A script may set subtitle (what is shown, below the finding), width and height before. Charts are 880
# pixels wide, as wide as they are shown in a README, and no text is smaller than 12 pixels.
if (!exists("width")) width = 880
if (!exists("height")) height = 560
if (!exists("subtitle")) subtitle = ''

# Font sizes are pixels in both: a point of pngcairo is 4/3 of them.
if (format eq 'svg') set terminal svg size width,height noenhanced font 'Helvetica,14' background rgb 'white'
if (format eq 'png') set terminal pngcairo size width,height noenhanced font 'sans,14' fontscale 0.75 background rgb 'white'
set output out
small = ',12.5'
bold = format eq 'svg' ? 'Helvetica:Bold' : 'sans:Bold'

set datafile separator comma
set datafile columnheaders
set datafile missing NaN

# Okabe-Ito without the yellow, which is lost on white.
array colours[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#B87F00', '#3A8FC4', '#000000', '#7F7F7F']
hue(k) = colours[1 + (k - 1) % 8]
set linetype 1 lc rgb colours[1] pt 7 dt 1 lw 2 ps 0.9
set linetype 2 lc rgb colours[2] pt 5 dt 2 lw 2 ps 0.8
set linetype 3 lc rgb colours[3] pt 9 dt 4 lw 2 ps 1.0
set linetype 4 lc rgb colours[4] pt 11 dt 5 lw 2 ps 1.0
set linetype 5 lc rgb colours[5] pt 13 dt 3 lw 2 ps 1.1
set linetype 6 lc rgb colours[6] pt 6 dt 1 lw 2 ps 0.9
set linetype 7 lc rgb colours[7] pt 4 dt 2 lw 2 ps 0.8
set linetype 8 lc rgb colours[8] pt 8 dt 4 lw 2 ps 1.0
set linetype cycle 8

set grid back lt 1 dt 1 lw 0.6 lc rgb '#D0D0D0'
set border 3 lc rgb '#404040'
set tics nomirror out font small
set key samplen 2 spacing 1.15 font small
set style fill solid 0.85 noborder
head = 20 + 22 * finding_lines + (strlen(subtitle) ? 18 : 0) + (strstrt(subtitle, "\n") ? 18 : 0)
set tmargin at screen 1 - (head + 32.0) / height
set bmargin at screen (82.0 + 16 * footer_lines) / height
set lmargin at screen 72.0 / width
set label 997 finding at screen 12.0 / width, 1 - 20.0 / height left font bold.',16' textcolor rgb '#101010'
set label 998 subtitle at screen 12.0 / width, 1 - (19 + 22.0 * finding_lines) / height left font ',13' textcolor rgb '#404040'
set label 999 footer at screen 12.0 / width, (12.0 + 16 * (footer_lines - 1)) / height left font ',12' textcolor rgb '#505050'

# The name of the y axis stands above it, where it is never cut off: set label 996 'GB/s' @above
above = "at graph 0, graph 1 left offset -5,1.1 font small textcolor rgb '#404040'"

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

# Numbers without exponents: 12900, 831, 5.14, 0.427.
digits(v) = abs(v) >= 100 ? 0 : abs(v) >= 10 ? 1 : abs(v) >= 1 ? 2 : 3
show(v) = v == v ? sprintf(sprintf('%%.%df', digits(v)), v) : ''

# Cells of heat maps: a colour between two, from 0 to 1, and ink that can be read on it.
channel(c, shift) = (int(c) >> shift) & 255
between(a, b, t, shift) = int(channel(a, shift) + (t > 1 ? 1 : t > 0 ? t : 0) * (channel(b, shift) - channel(a, shift)))
mix(a, b, t) = (between(a, b, t, 16) << 16) + (between(a, b, t, 8) << 8) + between(a, b, t, 0)
ink(c) = 0.3 * channel(c, 16) + 0.59 * channel(c, 8) + 0.11 * channel(c, 0) < 128 ? 0xFFFFFF : 0x000000

# Names at the ends of lines instead of a legend. For each series: last_x = -1e300, last_y = NaN, stats ... using
# (see(x, y)) for each device, the first one last; then name_end = text, end_hue = hue(k), load common.'end.gp'. After the last of them: y_lo and y_hi (the range of y), y_log (is it
# logarithmic?), load common.'ends.gp'. low and high are the range of all y that were seen or reached, least_x and most_x
# that of all x: the axes reach past them, so that no point is cut off.
array end_text[40]
array end_x[40]
array end_y[40]
array end_colour[40]
array end_at[40]
ends = 0
low = 1e300
high = -1e300
least_x = 1e300
most_x = -1e300
last_x = -1e300
last_y = NaN
reach(y) = y == y ? (low = y < low ? y : low, high = y > high ? y : high, 0) : 0
see(x, y) = x == x && y == y ? (reach(y), least_x = x < least_x ? x : least_x, most_x = x > most_x ? x : most_x, \
    x >= last_x ? (last_x = x, last_y = y, 0) : 0) : 0
