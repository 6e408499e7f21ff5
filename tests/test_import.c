/* Tests of `assay import`, with small Python files of their own. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "support.h"

SUITE(import_suite);

/* Writes the text to in.py, imports it to the folder `made`, and prints what was made. */
#define IMPORT(text, options, status)                                                              \
    ASSERT_RUN("rm -rf \"$T/import\"; mkdir -p \"$T/import\" && cd \"$T/import\" && cat > in.py "  \
               "<<'PY'\n" text "\nPY\n"                                                            \
               "\"$A\" import in.py --out made " options "; s=$?; cat made/*.metal made/*.args; "  \
               "exit $s",                                                                          \
               status)

#define SOURCE "uint i = thread_position_in_grid.x; out[i] = x[i];"

TEST a_kernel_gets_the_signature_of_mlx(void) {
    IMPORT("import mlx.core as mx\n"
           "def f(x, n):\n"
           "    k = mx.fast.metal_kernel(name='copy', input_names=['x', 's', 'n'],\n"
           "        output_names=['out'], atomic_outputs=True, source='''\n"
           "        uint i = thread_position_in_grid.x;\n"
           "        if (i < x_shape[0] * x_ndim) out[i] = x[i * x_strides[0]] * s[0] + n;''')\n"
           "    return k(inputs=[mx.zeros((4, 8), dtype=mx.float16), mx.array([1.5, 2.5]), 3],\n"
           "        template=[('T', mx.bfloat16), ('N', 7), ('B', True)], grid=(10, 2, 1),\n"
           "        threadgroup=(256, 1, 1), output_shapes=[(4, 8)], output_dtypes=[mx.uint32],\n"
           "        init_value=0)",
           "", 0);
    ASSERT_SAYS("template <typename T, int N, bool B>\n");
    ASSERT_SAYS("const device float16_t* x [[buffer(0)]],\n  const constant int* x_shape "
                "[[buffer(1)]],\n  const constant int64_t* x_strides [[buffer(2)]],\n"
                "  const constant int& x_ndim [[buffer(3)]],\n");
    ASSERT_SAYS("const constant float* s [[buffer(4)]],\n  const constant int32_t& n "
                "[[buffer(5)]],\n  device atomic<uint32_t>* out [[buffer(6)]],\n"
                "  uint3 thread_position_in_grid [[thread_position_in_grid]]) {\n");
    ASSERT_SAYS("custom_kernel_copy<bfloat16_t, 7, 1>;");
    ASSERT_SAYS("--threads 10,2,1 --group 10,1,1\n");
    ASSERT_SAYS("--arg 1=i32[]:value:4,8 ");
    ASSERT_SAYS("--arg 2=i64[]:value:8,1 ");
    ASSERT_SAYS("--arg 4=f32[2]:value:1.5,2.5 ");
    ASSERT_SAYS("--arg 5=i32:3 ");
    ASSERT_SAYS("--arg 6=u32[32]:value:0 ");
    ASSERT_SAYS("1 call, 1 imported as 1 kernel");
    PASS();
}

TEST sources_are_put_together_as_python_would(void) {
    IMPORT("from textwrap import dedent\n"
           "from mlx.core.fast import metal_kernel as make\n"
           "BODY = '''    out[0] = VALUE + {MORE};'''\n"
           "def source(n, wide=False):\n"
           "    lines = [f'float v_{i} = {i * 2};' for i in range(n) if i != 1]\n"
           "    for r in range(2):\n"
           "        lines += [f'float w_{r} = {1 / 4:.3f};']\n"
           "    lines.append('double_' 'width' if wide else '// narrow {}'.format(n))\n"
           "    return '\\n'.join(lines) + '\\n' + dedent(BODY).replace('VALUE', 'x[0]')\n"
           "k = make('joined', ['x'], ['out'], source(3).replace('{MORE}', str(0x10)))",
           "", 0);
    ASSERT_SAYS("float v_0 = 0;\n");
    ASSERT_SAYS("float v_2 = 4;\n");
    ASSERT(!strstr(command_get_output(), "v_1"));
    ASSERT_SAYS("float w_1 = 0.250;\n");
    ASSERT_SAYS("// narrow 3\n");
    ASSERT_SAYS("\nout[0] = x[0] + 16;\n");
    ASSERT_SAYS("#line 3 \"in.py\"\n");
    PASS();
}

TEST what_is_unknown_is_assumed_or_set(void) {
    IMPORT("import mlx.core as mx\n"
           "def maker(repeats):\n"
           "    if not mx.metal.is_available() or repeats < 1:\n"
           "        return None\n"
           "    return mx.fast.metal_kernel(name=f'r{repeats}', input_names=['x'],\n"
           "        output_names=['out'], source='" SOURCE "')\n"
           "def run(x, repeats):\n"
           "    rows, dim = x.shape\n"
           "    kernel = maker(repeats)\n"
           "    if kernel is None:\n"
           "        return None\n"
           "    return kernel(inputs=[x], template=[('D', dim)], grid=(dim, rows, 1),\n"
           "        threadgroup=(32, 1, 1), output_shapes=[x.shape], output_dtypes=[x.dtype])",
           "--set dim=100 --set x=float16", 0);
    ASSERT_SAYS("assumed repeats = 2\n");
    ASSERT_SAYS("custom_kernel_r2<100>;");
    ASSERT_SAYS("const device float16_t* x [[buffer(0)]]");
    ASSERT_SAYS("--arg 0=f16[3200]:random    # x float16 (32, 100)\n");
    PASS();
}

TEST a_call_that_cannot_be_followed_is_named_and_the_others_go_on(void) {
    IMPORT("import torch, sys\n"
           "a = torch.mps.compile_shader(open(sys.argv[1]).read())\n"
           "b = torch.mps.compile_shader('kernel void f(device float *x [[buffer(0)]]) "
           "{ x[0] = 1; }')",
           "", 1);
    ASSERT_SAYS("in.py:2: not imported: its source is not a text that the file spells out\n");
    ASSERT_SAYS("in.py:3: made/in.metal, no launch found\n");
    ASSERT_SAYS("2 calls, 1 imported as 1 kernel");
    ASSERT_RUN("cd \"$T/import\" && echo 'x = (1' > in.py && \"$A\" import in.py", 2);
    ASSERT_RUN("cd \"$T/import\" && \"$A\" import no.py", 2);
    PASS();
}

TEST kernels_of_a_torch_library_get_their_launches(void) {
    IMPORT("import torch\n"
           "lib = torch.mps.compile_shader('''\n"
           "kernel void full(device float *x, constant float &v, constant int &n,\n"
           "                 uint i [[thread_position_in_grid]]) { if (int(i) < n) x[i] = v; }\n"
           "kernel void add(device half *x, constant half *y,\n"
           "                uint i [[thread_position_in_grid]]) { x[i + 1] += y[i]; }\n"
           "''')\n"
           "x = torch.zeros(4, 8, device='mps')\n"
           "lib.full(x, 3.5, 32)\n"
           "h = torch.rand(64, dtype=torch.float16)\n"
           "getattr(lib, 'add')(h, h, threads=(32, 2), group_size=(32, 1))",
           "", 0);
    ASSERT_SAYS("# in.py:2, launched at line 9\nin.metal full\n--threads 32,1,1 --group 32,1,1\n");
    ASSERT_SAYS("--arg 0=f32[32]:random    # x float32 (4, 8)\n--arg 1=f32:3.5    # v\n"
                "--arg 2=i32:32    # n\n");
    ASSERT_SAYS("in.metal add\n--threads 32,2,1 --group 32,1,1\n--arg 0=f16[64]:random    # x ");
    ASSERT_RUN("cd \"$T/import\" && \"$A\" launch --args made/in_full.args --device soft", 0);
    ASSERT_SAYS("3.5  3.5");
    PASS();
}

/* A type by PyTorch's own table, its headers, and a launch that a lambda makes. */
TEST kernels_as_pytorch_tests_have_them_compile(void) {
    ASSERT_RUN("mkdir -p \"$T/c10/metal\" && echo 'namespace c10 { inline half own(float x) { "
               "return half(x); } }' > \"$T/c10/metal/own.h\"",
               0);
    IMPORT("import torch\n"
           "def test(self, dtype):\n"
           "    from torch._inductor.codegen.mps import DTYPE_TO_METAL\n"
           "    lib = torch.mps.compile_shader(f'''\n"
           "#include <c10/metal/own.h>\n"
           "kernel void do_sum(device {DTYPE_TO_METAL[torch.float16]} *x, constant "
           "{DTYPE_TO_METAL[dtype]} *y,\n"
           "        uint i [[thread_position_in_grid]]) {{ x[i] = c10::own(y[i]); }}\n"
           "''')\n"
           "    x = torch.zeros(32, dtype=torch.float16)\n"
           "    self.run(lambda: lib.do_sum(x, torch.zeros(32)))",
           "--torch \"$T\"", 0);
    ASSERT_SAYS("do_sum(device half *x, constant float *y,");
    ASSERT_SAYS("in.metal do_sum\n--threads 32,1,1");
    ASSERT_RUN("cd \"$T/import\" && \"$A\" lint -C made && "
               "\"$A\" launch --args made/in_do_sum.args -I \"$T\" --device soft",
               0);
    PASS();
}

TEST findings_name_the_line_of_the_python_file(void) {
    if (strcmp(support_get_device_name(), "soft") != 0)
        SKIPm("only checked mode reports them");
    IMPORT("import mlx.core as mx\n"
           "k = mx.fast.metal_kernel(name='late', input_names=['x'], output_names=['out'],\n"
           "    source='''\n"
           "    threadgroup float shared[64];\n"
           "    uint i = thread_index_in_threadgroup;\n"
           "    shared[i] = x[i];\n"
           "    out[i] = shared[63 - i];\n"
           "''')\n"
           "x = mx.zeros((64,))\n"
           "y = k(inputs=[x], template=[('T', x.dtype)], grid=(64, 1, 1), threadgroup=(64, 1, 1),\n"
           "      output_shapes=[x.shape], output_dtypes=[x.dtype])",
           "", 0);
    ASSERT_RUN("cd \"$T/import\" && \"$A\" lint -C made", 0);
    ASSERT_RUN("cd \"$T/import\" && \"$A\" launch --args made/late.args --validate --device soft",
               1);
    ASSERT_SAYS("race in threadgroup  in.py:7 ");
    PASS();
}

SUITE(import_suite) {
    RUN_TEST(a_kernel_gets_the_signature_of_mlx);
    RUN_TEST(sources_are_put_together_as_python_would);
    RUN_TEST(what_is_unknown_is_assumed_or_set);
    RUN_TEST(a_call_that_cannot_be_followed_is_named_and_the_others_go_on);
    RUN_TEST(kernels_of_a_torch_library_get_their_launches);
    RUN_TEST(kernels_as_pytorch_tests_have_them_compile);
    RUN_TEST(findings_name_the_line_of_the_python_file);
}
