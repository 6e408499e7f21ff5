# again: before the second chart of a page: what is written once is written, and no series has been seen.
unset arrow
unset label
set ytics autofreq
set xrange [*:*]
set yrange [*:*]
ends = 0
low = 1e300
high = -1e300
least_x = 1e300
most_x = -1e300
