# Norm and product in one launch against two: heat maps by width of the norm and number of rows.
subtitle = 'Time of RMSNorm and Q4_0 product in one launch, divided by that of two launches: below 1 fusing pays off'
height = 170 + 310 * files
load common.'style.gp'
list = ''
is_shape(x) = column('in') > 0 && column('out') > 0
stats file(1) using (is_shape(0) ? add(strcol('in')) : 0) nooutput
widths = list
list = ''
stats file(1) using (is_shape(0) ? add(strcol('out')) : 0) nooutput
outs = list
variants = 'fused_row fused_group'
names = '"fused per row" "fused per group of 8"'
tint(r) = r < 1 ? mix(0xF4F4F4, 0x0072B2, -log(r) / log(4)) : mix(0xF4F4F4, 0xD55E00, log(r) / log(4))
text(r) = r != r ? '' : sprintf('%.2f', r)
is(k) = is_shape(0) && strcol('variant') eq word(variants, k)
across(k) = is(k) && column('ratio_to_separate') > 0 ? at(widths, strcol('in')) : NaN
down(k) = at(outs, strcol('out'))
ratio(x) = column('ratio_to_separate')
unset grid
set border 0
set key off
set xrange [0.5:items(widths) + 0.5]
set yrange [items(outs) + 0.5:0.5]
set xtics scale 0 ('' 0)
set for [i=1:items(widths)] xtics add (item(widths, i) i)
set ytics scale 0 ('' 0)
set for [i=1:items(outs)] ytics add (item(outs, i) i)
set multiplot
side = 310.0 / height
roof = 1 - (head + 32.0) / height
do for [f=1:files] {
    set tmargin at screen roof - side * (f - 1)
    set bmargin at screen roof - side * f + 64.0 / height
    if (f < files) { set xlabel ' ' } else { set xlabel 'width of the norm' }
    do for [k=1:2] {
        set lmargin at screen (k == 1 ? 70.0 : 506.0) / width
        set rmargin at screen (k == 1 ? 430.0 : 866.0) / width
        set label 996 'rows' @above
        set label 201 word(names, k).(files > 1 ? ', '.word(titles, f) : '') at graph 0.5, graph 1 center offset 0,1.1 font ',13'
        plot file(f) using (across(k)):(down(k)):(across(k) - 0.5):(across(k) + 0.5):(down(k) - 0.5):(down(k) + 0.5):(tint(ratio(0))) \
            with boxxyerror lc rgb variable fs solid 1 noborder, \
            file(f) using (across(k)):(down(k)):(text(ratio(0))):(ink(tint(ratio(0)))) with labels font small tc rgb variable
        unset label
    }
}
unset multiplot
