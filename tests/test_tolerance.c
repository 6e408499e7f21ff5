/* Tests of derived tolerances: what the expression of an oracle allows a kernel. For each
 * expression a kernel that computes it, usually in another form and order than it is written, must
 * pass, and the same kernel must fail when its results are off by 0.1 %.
 *
 * One kernel computes all of them, chosen by a scalar, so that it is compiled once per math
 * mode. */
#include <greatest.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

SUITE(tolerance_suite);

/* MSL has the row (xs, ys) of x and y, its elements a and b at i, w and c of the other inputs at i,
 * and n, the elements of a row. */
static const struct {
    const char *oracle; /* with the lines let before it */
    const char *msl;    /* statements that set v */
} rows[] = {
    /* cancellation outside of a sum */
    {"oracle z[r, i] = x[r, i] * y[r, i] + x[r, dim - 1 - i] * y[r, dim - 1 - i]",
     "v = a * b + xs[n - 1 - i] * ys[n - 1 - i];"},
    {"oracle z[r, i] = x[r, i] - y[r, i] + w[i] - c[i]", "v = (a + w) - (b + c);"},
    {"oracle z[r, i] = ((x[r, i] * w[i] + y[r, i]) * x[r, i] + 1) * x[r, i] - 2",
     "v = fma(fma(fma(a, w, b), a, 1.0f), a, -2.0f);"},
    {"oracle z[r, i] = x[r, i] + w[i] * (y[r, i] - x[r, i])", "v = a * (1 - w) + b * w;"},
    {"oracle z[r, i] = (x[r, i] + y[r, i]) * (x[r, i] - y[r, i])", "v = a * a - b * b;"},
    {"oracle z[r, i] = x[r, i] * cos(0.01 * i) - y[r, i] * sin(0.01 * i)",
     "v = a * precise::cos(0.01f * i) - b * precise::sin(0.01f * i);"},
    {"oracle z[r, i] = min(x[r, i], y[r, i]) - max(w[i], c[i])", "v = min(a, b) - max(w, c);"},
    {"oracle z[r, i] = abs(x[r, i] - y[r, i])", "v = fabs(a - b);"},
    /* sums */
    {"oracle z[r, i] = sum(j < dim: x[r, j])", "EACH v += xs[j];"},
    {"oracle z[r, i] = sum(j < dim: x[r, j] * y[r, j])",
     "float e = 0, o = 0; EACH { if (j % 2) o += xs[j] * ys[j]; else e += xs[j] * ys[j]; } v = e + "
     "o;"},
    {"oracle z[r, i] = sum(j < dim: (j % 2 == 0 ? x[r, j] : -x[r, j]) * y[r, j])",
     "EACH v = fma(j % 2 ? -xs[j] : xs[j], ys[j], v);"},
    {"oracle z[r, i] = sum(j < i + 1: x[r, j])", "for (uint j = 0; j <= i; j++) v += xs[j];"},
    {"oracle z[r, i] = x[r, i] - sum(j < dim: x[r, j]) / dim",
     "EACH v += xs[j]; v = a - v * (1.0f / n);"},
    {"oracle z[r, i] = sum(j < dim: w[i] * x[r, j]) / sum(j < dim: abs(y[r, j]))",
     "float d = 0; EACH { v += xs[j]; d += fabs(ys[j]); } v = w * v / d;"},
    {"let mean[r < rows] = sum(j < dim: x[r, j]) / dim\n"
     "oracle z[r, i] = sum(j < dim: (x[r, j] - mean[r]) * (x[r, j] - mean[r])) / dim",
     "float m = 0; EACH m += xs[j]; m /= n; EACH v += (xs[j] - m) * (xs[j] - m); v /= n;"},
    {"oracle z[r, i] = sqrt(sum(j < dim: (x[r, j] - y[r, j]) * (x[r, j] - y[r, j])))",
     "EACH v += (xs[j] - ys[j]) * (xs[j] - ys[j]); v = sqrt(v);"},
    {"oracle z[r, i] = sum(j < dim: x[r, j] * y[r, j]) / (1 + "
     "sqrt(sum(j < dim: x[r, j] * x[r, j])) * sqrt(sum(j < dim: y[r, j] * y[r, j])))",
     "float p = 0, q = 0; EACH { v += xs[j] * ys[j]; p += xs[j] * xs[j]; q += ys[j] * ys[j]; } "
     "v /= sqrt(p) * sqrt(q) + 1;"},
    {"oracle z[r, i] = max(j < dim: x[r, j]) - min(j < dim: x[r, j]) + sum(j < 3: y[r, i] * j)",
     "float p = xs[0], q = xs[0]; EACH { p = max(p, xs[j]); q = min(q, xs[j]); } v = p - q + 3 * "
     "b;"},
    /* norms and softmax */
    {"oracle z[r, i] = w[i] * x[r, i] / sqrt(sum(j < dim: x[r, j] * x[r, j]) / dim + 1e-5)",
     "EACH v += xs[j] * xs[j]; v = a * rsqrt(v / n + 1e-5f) * w;"},
    {"oracle z[r, i] = w[i] * x[r, i] / sqrt(sum(j < dim: x[r, j] * x[r, j]) / dim + 1e-5) + c[i]",
     "EACH v += xs[j] * xs[j]; v = a * rsqrt(v / n + 1e-5f) * w + c;"},
    {"let mean[r < rows] = sum(j < dim: x[r, j]) / dim\n"
     "let var[r < rows] = sum(j < dim: (x[r, j] - mean[r]) * (x[r, j] - mean[r])) / dim\n"
     "oracle z[r, i] = (x[r, i] - mean[r]) / sqrt(var[r] + 1e-5) * w[i] + c[i]",
     "float m = 0; EACH m += xs[j]; m /= n; EACH v += (xs[j] - m) * (xs[j] - m); "
     "v = (a - m) * rsqrt(v / n + 1e-5f) * w + c;"},
    {"oracle z[r, i] = exp(x[r, i] - max(j < dim: x[r, j])) / "
     "sum(j < dim: exp(x[r, j] - max(k < dim: x[r, k])))",
     "float m = xs[0]; EACH m = max(m, xs[j]); EACH v += exp(xs[j] - m); v = exp(a - m) / v;"},
    {"let m[r < rows] = max(j < dim: x[r, j])\n"
     "oracle z[r, i] = x[r, i] - m[r] - log(sum(j < dim: exp(x[r, j] - m[r])))",
     "float m = xs[0]; EACH m = max(m, xs[j]); EACH v += exp(xs[j] - m); v = a - (m + log(v));"},
    {"let m[r < rows] = max(j < dim: x[r, j])\n"
     "oracle z[r, i] = m[r] + log(sum(j < dim: exp(x[r, j] - m[r])))",
     "float m = xs[0]; EACH m = max(m, xs[j]); EACH v += exp(xs[j] - m); v = m + log(v);"},
    {"let m[r < rows] = max(j < dim: x[r, j])\n"
     "let p[r < rows, j < dim] = exp(x[r, j] - m[r])\n"
     "oracle z[r, i] = sum(j < dim: p[r, j] * y[r, j]) / sum(j < dim: p[r, j])",
     "float m = xs[0], d = 0; EACH { float k = max(m, xs[j]), s = exp(m - k), e = exp(xs[j] - k); "
     "v = v * s + e * ys[j]; d = d * s + e; m = k; } v /= d;"},
    /* activations */
    {"oracle z[r, i] = x[r, i] / (1 + exp(-x[r, i]))", "v = a * (1 / (1 + exp(-a)));"},
    {"oracle z[r, i] = x[r, i] / (1 + exp(-x[r, i])) * y[r, i]", "v = a * b / (1 + exp(-a));"},
    {"oracle z[r, i] = 0.5 * x[r, i] * (1 + tanh(0.7978845608 * (x[r, i] + 0.044715 * "
     "x[r, i] * x[r, i] * x[r, i])))",
     "v = 0.5f * a * (1 + precise::tanh(0.7978845608f * a * (1 + 0.044715f * a * a)));"},
    {"oracle z[r, i] = max(x[r, i], 0) + log(1 + exp(-abs(x[r, i])))",
     "v = fmax(a, 0.0f) + log(1 + exp(-fabs(a)));"},
    {"oracle z[r, i] = tanh(x[r, i]) / (1 + exp(-y[r, i]))",
     "v = precise::tanh(a) * (1 / (1 + exp(-b)));"},
    {"oracle z[r, i] = x[r, i] > 0 ? x[r, i] * x[r, i] : 0.01 * x[r, i]",
     "v = a > 0 ? a * a : 0.01f * a;"},
    {"oracle z[r, i] = pow(abs(x[r, i]), 1.7)", "v = precise::pow(fabs(a), 1.7f);"},
    {"oracle z[r, i] = exp(-x[r, i] * x[r, i] / 2) / (1 + y[r, i] * y[r, i])",
     "v = exp(-0.5f * a * a) / fma(b, b, 1.0f);"},
    {"oracle z[r, i] = 30 * tanh((x[r, i] + y[r, i]) / 30)",
     "v = 30 * precise::tanh((a + b) * (1.0f / 30));"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static char path[512];

static FILE *create(const char *name) {
    char full[600];
    snprintf(full, sizeof full, "%s/%s", path, name);
    return fopen(full, "w");
}

/* A row's text, with EACH as what it means: without macros no preprocessor is started, 105 times. */
static void write_row(FILE *out, int i) {
    const char *text = rows[i].msl;
    fprintf(out, "    case %d: { ", i);
    for (const char *each; (each = strstr(text, "EACH ")); text = each + strlen("EACH "))
        fprintf(out, "%.*sfor (uint j = 0; j < n; j++) ", (int)(each - text), text);
    fprintf(out, "%s break; }\n", text);
}

static bool write_kernel(void) {
    FILE *out = create("many.metal");
    if (!out)
        return false;
    fputs("#include <metal_stdlib>\nusing namespace metal;\n"
          "kernel void many(device const float *x [[buffer(0)]],\n"
          "    device const float *y [[buffer(1)]], device const float *ws [[buffer(2)]],\n"
          "    device const float *cs [[buffer(3)]], device float *z [[buffer(4)]],\n"
          "    constant uint &n [[buffer(5)]], constant uint &which [[buffer(6)]],\n"
          "    constant float &off [[buffer(7)]], uint2 g [[thread_position_in_grid]]) {\n"
          "    const uint r = g.y, i = g.x;\n"
          "    device const float *xs = x + r * n, *ys = y + r * n;\n"
          "    const float a = xs[i], b = ys[i], w = ws[i], c = cs[i];\n    float v = 0;\n"
          "    switch (which) {\n",
          out);
    for (int i = 0; i < ROWS; i++)
        write_row(out, i);
    fputs("    }\n    z[r * n + i] = v * off;\n}\n", out);
    return fclose(out) == 0;
}

/* The third size is what results are multiplied with, in thousandths. */
static bool write_description(int which) {
    FILE *out = create("many.op");
    if (!out)
        return false;
    fprintf(out,
            "op many: one of many\ndims rows dim off\n"
            "shapes 3x33x1000 2x1024x1000 3x33x1001 2x1024x999\ninputs 3x77x1000\n"
            "kernel many many.metal group 32 dispatch dim, rows\n"
            "in x f32[rows, dim]\nin y f32[rows, dim]\nin w f32[dim]\nin c f32[dim]\n"
            "out z f32[rows, dim]\nvalue n u32 = dim\nvalue which u32 = %d\n"
            "value factor f32 = off / 1000.0\n%s\n",
            which, rows[which].oracle);
    return fclose(out) == 0;
}

static bool start(void) {
    return command_run("rm -rf $T && mkdir $T && touch $T/assay.project && printf %s $T") == 0 &&
           snprintf(path, sizeof path, "%s", command_get_output()) > 0 && write_kernel();
}

/* The right kernel passes with every input; off by 0.1 % it fails with ordinary ones, at every
 * size. */
static enum greatest_test_res try_all(const char *environment, const char *options) {
    char line[256];
    ASSERT(start());
    for (int i = 0; i < ROWS; i++) {
        ASSERT(write_description(i));
        snprintf(line, sizeof line, "%s $A check -v -C $T --device soft %s", environment, options);
        int status = command_run(line);
        if (status != 1 || !command_says("7 passed, 2 failed"))
            fprintf(stderr, "%s\n", rows[i].oracle);
        ASSERT_EQ_FMTm(command_get_output(), 1, status, "%d");
        ASSERT_SAYS("7 passed, 2 failed");
        ASSERT_SAYS("many/3x33x1001/normal: kernel many: 'z'");
        ASSERT_SAYS("many    2x1024x999   normal     FAIL");
        ASSERT_SAYS("derived from many.op:");
    }
    PASS();
}

TEST right_kernels_pass_and_those_off_by_a_thousandth_fail(void) {
    return try_all("", "");
}

TEST so_they_do_with_fast_math(void) {
    return try_all("", "--math fast");
}

TEST so_they_do_where_denormals_are_flushed(void) {
    return try_all("ASSAY_FLUSH=1", "");
}

SUITE(tolerance_suite) {
    RUN_TEST(right_kernels_pass_and_those_off_by_a_thousandth_fail);
    RUN_TEST(so_they_do_with_fast_math);
    RUN_TEST(so_they_do_where_denormals_are_flushed);
}
