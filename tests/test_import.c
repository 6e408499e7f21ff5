/* Tests of `assay import`, with small Python files of their own. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "support.h"

SUITE(import_suite);

#define SOURCE "uint i = thread_position_in_grid.x; out[i] = x[i];"

/* A Python file, what it is imported with, and what is said and written then. */
static const struct {
    const char *name, *text, *options;
    int status;
    const char *says[16];
} cases[] = {
    {"a kernel gets the signature of mlx",
     "import mlx.core as mx\n"
     "def f(x, n):\n"
     "    k = mx.fast.metal_kernel(name='copy', input_names=['x', 's', 'n'],\n"
     "        output_names=['out'], atomic_outputs=True, source='''\n"
     "        uint i = thread_position_in_grid.x;\n"
     "        if (i < x_shape[0] * x_ndim) out[i] = x[i * x_strides[0]] * s[0] + n;''')\n"
     "    return k(inputs=[mx.zeros((4, 8), dtype=mx.float16), mx.array([1.5, 2.5]), 3],\n"
     "        template=[('T', mx.bfloat16), ('N', 7), ('B', True)], grid=(10, 2, 1),\n"
     "        threadgroup=(256, 1, 1), output_shapes=[(4, 8)], output_dtypes=[mx.uint32],\n"
     "        init_value=0)",
     "",
     0,
     {"template <typename T, int N, bool B>\n",
      "const device float16_t* x [[buffer(0)]],\n  const constant int* x_shape "
      "[[buffer(1)]],\n  const constant int64_t* x_strides [[buffer(2)]],\n"
      "  const constant int& x_ndim [[buffer(3)]],\n",
      "const constant float* s [[buffer(4)]],\n  const constant int32_t& n "
      "[[buffer(5)]],\n  device atomic<uint32_t>* out [[buffer(6)]],\n"
      "  uint3 thread_position_in_grid [[thread_position_in_grid]]) {\n",
      "custom_kernel_copy<bfloat16_t, 7, 1>;", "--threads 10,2,1 --group 10,1,1\n",
      "--arg 1=i32[]:value:4,8 ", "--arg 2=i64[]:value:8,1 ", "--arg 4=f32[2]:value:1.5,2.5 ",
      "--arg 5=i32:3 ", "--arg 6=u32[32]:value:0 ", "1 call, 1 imported as 1 kernel"}},
    {"sources are put together as python would",
     "from textwrap import dedent\n"
     "from mlx.core.fast import metal_kernel as make\n"
     "BODY = '''    out[0] = VALUE + {MORE};'''\n"
     "def source(n, wide=False):\n"
     "    lines = [f'float v_{i} = {i * 2};' for i in range(n) if i != 1]\n"
     "    for r in range(2):\n"
     "        lines += [f'float w_{r} = {1 / 4:.3f};']\n"
     "    lines.append('double_' 'width' if wide else '// narrow {}'.format(n))\n"
     "    return '\\n'.join(lines) + '\\n' + dedent(BODY).replace('VALUE', 'x[0]')\n"
     "k = make('joined', ['x'], ['out'], source(3).replace('{MORE}', str(0x10)))",
     "",
     0,
     {"float v_0 = 0;\n", "float v_2 = 4;\n", "float w_1 = 0.250;\n", "// narrow 3\n",
      "\nout[0] = x[0] + 16;\n", "#line 3 \"in.py\"\n"}},
    {"what is unknown is assumed or set",
     "import mlx.core as mx\n"
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
     "--set dim=100 --set x=float16",
     0,
     {"assumed repeats = 2\n", "custom_kernel_r2<100>;", "const device float16_t* x [[buffer(0)]]",
      "--arg 0=f16[3200]:random    # x float16 (32, 100)\n"}},
    {"a call that cannot be followed is named and the others go on",
     "import torch, sys\n"
     "a = torch.mps.compile_shader(open(sys.argv[1]).read())\n"
     "b = torch.mps.compile_shader('kernel void f(device float *x [[buffer(0)]]) "
     "{ x[0] = 1; }')",
     "",
     1,
     {"in.py:2: not imported: its source is not a text that the file spells out\n",
      "in.py:3: made/in.metal, no launch found\n", "2 calls, 1 imported as 1 kernel"}},
    {"kernels of a torch library get their launches",
     "import torch\n"
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
     "",
     0,
     {"# in.py:2, launched at line 9\nin.metal full\n--threads 32,1,1 --group 32,1,1\n",
      "--arg 0=f32[32]:random    # x float32 (4, 8)\n--arg 1=f32:3.5    # v\n"
      "--arg 2=i32:32    # n\n",
      "in.metal add\n--threads 32,2,1 --group 32,1,1\n--arg 0=f16[64]:random    # x "}},
    {"kernels as pytorch tests have them compile",
     "import torch\n"
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
     "--torch \"$T\"",
     0,
     {"do_sum(device half *x, constant float *y,", "in.metal do_sum\n--threads 32,1,1"}},
    {"findings name the line of the python file",
     "import mlx.core as mx\n"
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
     "",
     0,
     {"made/late.metal"}},
    {"loops and texts without end are given up",
     "import mlx.core as mx\n"
     "n, s = 1, 'x'\n"
     "while n > 0:\n"
     "    n += 1\n"
     "    s = s * 1000 if len(s) < 10000000 else s\n"
     "x = 10 ** 10 ** 10 + (1 << 10 ** 9)\n"
     "def f(a):\n"
     "    return f(a) + f(a)\n"
     "def g(k):\n"
     "    return k(f(1), grid=(1, 1, 1), threadgroup=(1, 1, 1))\n"
     "__import__('os').system('echo executed')\n"
     "k = mx.fast.metal_kernel(name='end', input_names=['x'], output_names=['out'],\n"
     "    source='" SOURCE "')",
     "",
     0,
     {"made/end.metal, no launch found", "1 call, 1 imported as 1 kernel"}},
};

TEST a_file_is_imported(size_t i) {
    char line[8000];
    snprintf(line, sizeof line,
             "rm -rf \"$T/import\"; mkdir -p \"$T/import\" \"$T/c10/metal\" && cd \"$T/import\" && "
             "echo 'namespace c10 { inline half own(float x) { return half(x); } }' > "
             "\"$T/c10/metal/own.h\"; cat > in.py <<'PY'\n%s\nPY\n"
             "\"$A\" import in.py --out made %s; s=$?; cat made/*.metal made/*.args; exit $s",
             cases[i].text, cases[i].options);
    ASSERT_RUN(line, cases[i].status);
    for (const char *const *says = cases[i].says; *says; says++)
        ASSERT_SAYS(*says);
    ASSERT(!strstr(command_get_output(), "v_1") && !strstr(command_get_output(), "executed"));
    PASS();
}

static size_t find_case(const char *name) {
    size_t i = 0;
    while (strcmp(cases[i].name, name) != 0)
        i++;
    return i;
}

#define IN_IT "cd \"$T/import\" && "

TEST what_was_imported_compiles_and_runs(void) {
    CHECK_CALL(a_file_is_imported(find_case("kernels of a torch library get their launches")));
    ASSERT_RUN(IN_IT "\"$A\" launch --args made/in_full.args --device soft", 0);
    ASSERT_SAYS("3.5  3.5");
    CHECK_CALL(a_file_is_imported(find_case("kernels as pytorch tests have them compile")));
    ASSERT_RUN(IN_IT "\"$A\" lint -C made && "
                     "\"$A\" launch --args made/in_do_sum.args -I \"$T\" --device soft",
               0);
    PASS();
}

TEST findings_name_the_line_of_the_python_file(void) {
    if (strcmp(support_get_device_name(), "soft") != 0)
        SKIPm("only checked mode reports them");
    CHECK_CALL(a_file_is_imported(find_case("findings name the line of the python file")));
    ASSERT_RUN(IN_IT "\"$A\" lint -C made", 0);
    ASSERT_RUN(IN_IT "\"$A\" launch --args made/late.args --validate --device soft", 1);
    ASSERT_SAYS("race in threadgroup  in.py:7 ");
    PASS();
}

TEST what_cannot_be_read_is_refused(void) {
    static const struct {
        const char *line;
        int status;
        const char *says;
    } refused[] = {
        {"echo 'x = (1 # metal_kernel' > in.py && \"$A\" import in.py", 2, "in.py:1: not Python"},
        {"\"$A\" import no.py", 2, "no.py"},
        {"echo 'x = 1' > in.py && \"$A\" import in.py", 2, "no call of metal_kernel"},
        {"\"$A\" import in.py --set V", 2, "--set takes NAME=VALUE"},
        {"\"$A\" import in.py --mlx nowhere", 2, "--mlx: there is no folder nowhere"},
        {"{ printf 'metal_kernel('; head -c 300000 /dev/zero | tr '\\0' '-'; echo '1)'; } > in.py; "
         "\"$A\" import in.py",
         2, "assay: "},
        {"mkfifo in.fifo; \"$A\" import in.fifo", 2, "not a plain file"},
        {"PATH= \"$A\" import in.py", 3,
         "import needs python3, 3.8 or newer, which is not installed"},
    };
    ASSERT_RUN("rm -rf \"$T/import\"; mkdir -p \"$T/import\"", 0);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char line[400];
        snprintf(line, sizeof line, IN_IT "%s", refused[i].line);
        ASSERT_RUN(line, refused[i].status);
        ASSERT_SAYS(refused[i].says);
    }
    PASS();
}

SUITE(import_suite) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        RUN_TESTp(a_file_is_imported, i);
    RUN_TEST(what_was_imported_compiles_and_runs);
    RUN_TEST(findings_name_the_line_of_the_python_file);
    RUN_TEST(what_cannot_be_read_is_refused);
}
