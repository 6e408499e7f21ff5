// elements: the two neighbours that a lane has of a simdgroup matrix, and where they are: not every device has
// them where Apple's GPUs do. Only of sums in floats.
//
// MULTIPLY_SEVERAL: d = the sum of the products of a few matrices a and b, which may be of other types.
// HAS_BFLOATS: b may be bfloats.
#pragma once

#if defined(__ASSAY__) && defined(__HAVE_BFLOAT__)
#define HAS_BFLOATS 1
#else
#define HAS_BFLOATS 0
#endif

#ifdef __ASSAY__
#define MULTIPLY_SEVERAL(d, a, b) ASSAY_MULTIPLY_SEVERAL(d, a, b)
#define ELEMENTS(matrix) ASSAY_ELEMENTS(matrix)
#define ELEMENT_ROW(lane) ASSAY_ELEMENT_ROW(lane)
#define ELEMENT_COLUMN(lane) ASSAY_ELEMENT_COLUMN(lane)
#else
#define MULTIPLY_SEVERAL(d, a, b) multiply_several(d, a, b)
template <typename M, uint n> inline void multiply_several(thread simdgroup_float8x8 &d,
                                                           thread const simdgroup_float8x8 (&a)[n],
                                                           thread const M (&b)[n]) {
    d = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint k = 0; k < n; k++)
        simdgroup_multiply_accumulate(d, a[k], b[k], d);
}
#define ELEMENTS(matrix) (matrix).thread_elements()
#define ELEMENT_ROW(lane) ((lane) / 16 * 4 + (lane) / 2 % 4)
#define ELEMENT_COLUMN(lane) ((lane) / 8 % 2 * 4 + (lane) % 2 * 2)
#endif
