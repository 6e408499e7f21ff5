# end: the series that was seen is named name_end, in the colour end_hue.
if (last_y == last_y) {
    ends = ends + 1
    end_text[ends] = name_end
    end_x[ends] = last_x
    end_y[ends] = last_y
    end_colour[ends] = end_hue
}
