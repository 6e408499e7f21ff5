# rows: the cases of a file, for results that have no script of their own, such as those of bench. Kernels that do the
# same (op, format, shape, input, regime, cache) stand together, the fastest on top: every sample is a dot, the line goes
# from quartile to quartile and the mark is the median. Of more than 100 rows only the fastest of each group is drawn.
# Kernels of others (FILE.metal:KERNEL) have another colour, and ours beside them say how many times as fast they are.
# Given besides: samples (files, or "").
set datafile separator comma
set datafile columnheaders
rows = 0
do for [f=1:files] {
    stats word(csv, f) using (column('n') > 0 ? column('gpu_ns') : NaN) nooutput
    rows = rows + (exists("STATS_records") ? STATS_records : 0)
}
array name[rows]
array shown[rows]
array group[rows]
array state[rows]
array shape[rows]
array owner[rows]
array median[rows]
array theirs[rows]
array right[rows]
array y[rows]
array kind[rows]
array kernel[rows]
array sizes[rows]
at_row = 0
join(a, b) = b eq '' ? a : a eq '' ? b : a.', '.b
label_of(x) = strcol('kernel') eq '' ? strcol('case') : strcol('kernel').(strcol('math') eq 'fast' || strcol('math') eq '' ? '' : ', '.strcol('math').' math')
note(is_timed, f) = is_timed ? (at_row = at_row + 1, name[at_row] = strcol('case'), owner[at_row] = f, \
    shown[at_row] = label_of(0), median[at_row] = column('gpu_ns'), right[at_row] = column('gpu_q3_ns'), \
    state[at_row] = join(strcol('regime'), strcol('cache')), shape[at_row] = strcol('shape'), \
    kernel[at_row] = strcol('kernel'), kind[at_row] = strcol('op').'/'.strcol('format').'/'.state[at_row], \
    sizes[at_row] = (sum [c=1:strlen(shape[at_row])] (substr(shape[at_row], c, c) eq 'x' ? 1 : 0)), \
    theirs[at_row] = strstrt(strcol('kernel'), '.metal:') > 0, \
    group[at_row] = strcol('kernel') eq '' ? '' : join(join(strcol('op').(strcol('format') eq '' ? '' : ' '.strcol('format')).' '.strcol('shape'), join(strcol('regime'), strcol('cache'))), \
        strcol('input') eq 'normal' ? '' : strcol('input')), 0) : 0
do for [f=1:files] { stats word(csv, f) using (note(column('n') > 0, f)) nooutput }
# A group is known by its first row.
first_of(i) = (found = 0, sum [j=1:rows] (found == 0 && group[j] eq group[i] ? (found = j, 0) : 0), found)
array known[rows]
do for [i=1:rows] { known[i] = first_of(i) }
is_before(j, i) = known[j] != known[i] ? known[j] < known[i] : \
    median[j] != median[i] ? median[j] < median[i] : j < i
is_many = rows > 100
is_uniform = rows > 0 ? (sum [j=1:rows] (state[j] ne state[1] ? 1 : 0)) == 0 : 1
array kept[rows]
do for [i=1:rows] {
    kept[i] = !is_many || group[i] eq '' || (sum [j=1:rows] (known[j] == known[i] && owner[j] == owner[i] && is_before(j, i) ? 1 : 0)) == 0
    if (is_many) { shown[i] = join(shown[i].' '.shape[i], is_uniform ? '' : state[i]) }
}
# Above each group is a line with its name.
has_head(i) = !is_many && known[i] == i && group[i] ne ''
heads(i) = (sum [j=1:rows] (j <= known[i] && has_head(j) ? 1 : 0))
do for [i=1:rows] { y[i] = kept[i] ? 1 + (sum [j=1:rows] (kept[j] && is_before(j, i) ? 1 : 0)) + heads(i) : NaN }
lines = rows > 0 ? (sum [j=1:rows] (kept[j] + has_head(j))) : 0
# The fastest of others in the group of a row, on the same device.
rival(i) = (fastest = 1e300, sum [j=1:rows] (known[j] == known[i] && owner[j] == owner[i] && theirs[j] && median[j] < fastest ? \
    (fastest = median[j], 0) : 0), fastest < 1e300 ? fastest : NaN)
# Of those drawn where there are many: how many of the kernels of its op, format and state that were timed at any shape
# (with as many sizes) were timed at its own, and is one that is the fastest at another shape not among them?
is_alike(j, i) = owner[j] == owner[i] && kind[j] eq kind[i] && sizes[j] == sizes[i]
is_timed_as(j, i) = (sum [r=1:rows] (known[r] == known[i] && owner[r] == owner[i] && kernel[r] eq kernel[j] ? 1 : 0)) > 0
array is_new[rows]
do for [i=1:rows] { is_new[i] = !is_many || (sum [j=1:i-1] (is_alike(j, i) && kernel[j] eq kernel[i] ? 1 : 0)) == 0 }
timed(i) = (sum [j=1:rows] (known[j] == known[i] && owner[j] == owner[i] ? 1 : 0))
kernels(i) = (sum [j=1:rows] (is_new[j] && is_alike(j, i) ? 1 : 0))
lacks(i) = is_many && (sum [j=1:rows] (kept[j] && is_alike(j, i) && !is_timed_as(j, i) ? 1 : 0)) > 0
how_many(i) = is_many ? sprintf(' (%d of %d)', timed(i), kernels(i)) : ''
has_theirs = rows > 0 ? (sum [j=1:rows] (theirs[j] ? 1 : 0)) : 0

# Room for the longest name, and the same for the rest of the chart.
longest = 0
do for [i=1:rows] { if (kept[i] && strlen(shown[i]) > longest) { longest = strlen(shown[i]) } }
names = 7.4 * longest + 34
do for [i=1:rows] { if (!is_many && 8.4 * strlen(group[i]) + 16 > names) { names = 8.4 * strlen(group[i]) + 16 } }
sides = is_many ? 460 : 440
width = sides + names > 880 ? sides + names : 880
has_samples = !is_many
do for [f=1:files] { if (word(samples, f) eq '') { has_samples = 0 } }
subtitle = 'GPU clock; '.(has_samples ? 'dots: samples, ' : '').'lines: quartiles, marks: medians; '.(is_many ? "of each op, format and shape the fastest kernel that was timed".(is_uniform ? ', '.state[1] : '')."\n(N of M): of M kernels that were timed at any shape, N were timed at this one; brown: the fastest at another was not" : 'the fastest of each group on top')
height = 190 + 19 * lines + 16 * (footer_lines - 1)
load common.'style.gp'
set lmargin at screen names / width
set rmargin at screen 1 - (has_theirs || is_many ? 150.0 : 80.0) / width
set logscale x
set xtics ('' 1e-30)
set for [d=-3:9] xtics add (sprintf(d < 0 ? '%g' : '%.0f', 10.0 ** d) 10.0 ** d)
set xlabel 'µs per launch, log scale'
set yrange [lines + 0.7:0.3]
set ytics scale 0 ('' 0)
do for [i=1:rows] {
    if (!kept[i]) { continue }
    set ytics add (shown[i] y[i])
    if (has_head(i)) {
        edge = lines + 1
        do for [j=1:rows] { if (known[j] == i && y[j] < edge) { edge = y[j] } }
        set label 1000 + i group[i] at screen 12.0 / width, first edge - 1 left font bold.',12.5'
        if (edge > 2) { set arrow from screen 12.0 / width, first edge - 1.5 to graph 1, first edge - 1.5 nohead lc rgb '#909090' lw 1 }
    }
    ratio = rival(i) / median[i]
    if (ratio == ratio && !theirs[i]) { set label 2000 + i sprintf('%s times as fast', show(ratio)) at graph 1.01, first y[i] left font ',12' textcolor rgb (ratio >= 1 ? '#005A8C' : '#A04000') }
    if (!has_theirs) { set label 2000 + i show(1e-3 * median[i]).' µs'.how_many(i) at graph 1.01, first y[i] left font ',12' textcolor rgb (lacks(i) ? '#A04000' : '#000000') }
    if (theirs[i]) { set label 2000 + i 'theirs' at graph 1.01, first y[i] left font ',12' textcolor rgb colours[2] }
}
set key off
if (files > 1) set key at screen 1 - 12.0 / width, screen 1 - 14.0 / height right top
# Rows and samples of a case follow each other: the place is looked up when the case changes.
last = ''
place = NaN
find(text, f) = (place = NaN, sum [j=1:rows] (owner[j] == f && name[j] eq text ? (place = y[j], 0) : 0), last = text, place)
place_of(text, f) = text.' '.f eq last ? place : (find(text, f), last = text.' '.f, place)
jitter(i) = 0.5 * (i * 0.61803 - floor(i * 0.61803)) - 0.25
side(is_theirs) = (strstrt(strcol('kernel'), '.metal:') > 0) == is_theirs && column('n') > 0 ? 1e-3 * column('gpu_ns') : NaN
line(f, is_theirs) = f == 1 ? 1 + is_theirs : 2 + f
plot for [f=1:(has_samples ? files : 0)] word(samples, f) using (1e-3 * column('gpu_ns')):(place_of(strcol('case'), f) + jitter(column('i'))) \
    with points pt 7 ps 0.25 lc rgb '#9AA5B1' notitle, \
    for [f=1:files] for [t=0:(has_theirs ? 1 : 0)] file(f) using (side(t)):(place_of(strcol('case'), f)):(1e-3 * column('gpu_q1_ns')):(1e-3 * column('gpu_q3_ns')) \
    with xerrorbars lt line(f, t) dt 1 title (t == 0 ? word(titles, f) : '')
