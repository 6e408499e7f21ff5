// The recurrence of RWKV-7 for training, forward and backward, in f32.
//
// Per head, with a state S (value i, key j) that starts at zero:
//     sa[i]   = sum_j S[i][j] a[j]
//     S[i][j] = S[i][j] w[j] + v[i] k[j] + sa[i] b[j]
//     y[i]    = sum_j S[i][j] r[j]
//
// One block of 64 threads runs one head of one sequence from the first token to the last. Vectors are
// (batch, time, heads, 64). The forward pass keeps sa of every token and the state after every CHUNK
// tokens; the backward pass undoes the update token by token from those states. A decay is never
// below 0.545, so that 8 divisions lose at most a factor of 130 in precision.

constexpr int N = 64, CHUNK = 8;

struct place {
    long at, step; // of this thread's channel at the first token, and to the next token
};

__device__ place first_token(int time, int heads) {
    long sequence = blockIdx.x / heads, head = blockIdx.x % heads, step = (long)heads * N;
    return {sequence * time * step + head * N + threadIdx.x, step};
}

__device__ float *chunk_state(float *states, int time, int chunk) {
    return states + ((long)blockIdx.x * (time / CHUNK) + chunk) * N * N;
}

// Thread i owns row i of the state. states holds it transposed, so that a warp writes neighbours.
__global__ void __launch_bounds__(N)
    forward(int time, int heads, const float *r, const float *w, const float *k, const float *v,
            const float *a, const float *b, float *y, float *sa, float *states) {
    __shared__ alignas(16) float rs[N], ws[N], ks[N], as[N], bs[N];
    int i = threadIdx.x;
    place p = first_token(time, heads);
    float s[N];
#pragma unroll
    for (int j = 0; j < N; j++)
        s[j] = 0;
    for (int t = 0; t < time; t++, p.at += p.step) {
        float rt = r[p.at], wt = w[p.at], kt = k[p.at], at = a[p.at], bt = b[p.at], vt = v[p.at];
        __syncthreads();
        rs[i] = rt, ws[i] = wt, ks[i] = kt, as[i] = at, bs[i] = bt;
        __syncthreads();
        float removed = 0, out = 0;
#pragma unroll
        for (int j = 0; j < N; j++)
            removed += s[j] * as[j];
#pragma unroll
        for (int j = 0; j < N; j++) {
            s[j] = s[j] * ws[j] + vt * ks[j] + removed * bs[j];
            out += s[j] * rs[j];
        }
        y[p.at] = out;
        sa[p.at] = removed;
        if (t % CHUNK == CHUNK - 1) {
            float *state = chunk_state(states, time, t / CHUNK);
#pragma unroll
            for (int j = 0; j < N; j++)
                state[j * N + i] = s[j];
        }
    }
}

// A thread owns column j of the state and of its gradient, and row i = j of the gradient, because
// sums run over both.
__global__ void __launch_bounds__(N)
    backward(int time, int heads, const float *r, const float *w, const float *k, const float *v,
             const float *a, const float *b, const float *sa, float *states, const float *dy,
             float *dr, float *dw, float *dk, float *dv, float *da, float *db) {
    __shared__ alignas(16) float rs[N], ws[N], ks[N], vs[N], as[N], bs[N], ss[N], ds[N], es[N];
    int n = threadIdx.x;
    place p = first_token(time, heads);
    p.at += (time - 1) * p.step;
    float column[N], gradient_column[N], gradient_row[N];
#pragma unroll
    for (int m = 0; m < N; m++)
        gradient_column[m] = gradient_row[m] = 0;
    for (int t = time - 1; t >= 0; t--, p.at -= p.step) {
        float rt = r[p.at], wt = w[p.at], kt = k[p.at], vt = v[p.at];
        float at = a[p.at], bt = b[p.at], st = sa[p.at], dt = dy[p.at];
        if (t % CHUNK == CHUNK - 1) {
            float *state = chunk_state(states, time, t / CHUNK) + n * N;
#pragma unroll
            for (int m = 0; m < N; m++)
                column[m] = state[m];
        }
        __syncthreads();
        rs[n] = rt, ws[n] = wt, ks[n] = kt, vs[n] = vt, as[n] = at, bs[n] = bt, ss[n] = st, ds[n] = dt;
        __syncthreads();
        float sum_v = 0, sum_sa = 0;
#pragma unroll
        for (int j = 0; j < N; j++) {
            gradient_row[j] += dt * rs[j];
            sum_v += gradient_row[j] * ks[j];
            sum_sa += gradient_row[j] * bs[j];
        }
#pragma unroll
        for (int j = 0; j < N; j++)
            gradient_row[j] = gradient_row[j] * ws[j] + sum_sa * as[j];
        es[n] = sum_sa;
        __syncthreads();
        float sum_r = 0, sum_w = 0, sum_k = 0, sum_a = 0, sum_b = 0, inverse = 1 / wt;
#pragma unroll
        for (int i = 0; i < N; i++) {
            float g = gradient_column[i] + ds[i] * rt;
            sum_r += column[i] * ds[i];
            sum_k += g * vs[i];
            sum_b += g * ss[i];
            column[i] = (column[i] - vs[i] * kt - ss[i] * bt) * inverse;
            sum_w += g * column[i];
            sum_a += es[i] * column[i];
            gradient_column[i] = g * wt + es[i] * at;
        }
        dr[p.at] = sum_r, dw[p.at] = sum_w, dk[p.at] = sum_k;
        dv[p.at] = sum_v, da[p.at] = sum_a, db[p.at] = sum_b;
    }
}

extern "C" int wkv7_forward(void *stream, int batch, int time, int heads, const float *r,
                            const float *w, const float *k, const float *v, const float *a,
                            const float *b, float *y, float *sa, float *states) {
    forward<<<batch * heads, N, 0, (cudaStream_t)stream>>>(time, heads, r, w, k, v, a, b, y, sa,
                                                           states);
    return cudaGetLastError();
}

extern "C" int wkv7_backward(void *stream, int batch, int time, int heads, const float *r,
                             const float *w, const float *k, const float *v, const float *a,
                             const float *b, const float *sa, float *states, const float *dy,
                             float *dr, float *dw, float *dk, float *dv, float *da, float *db) {
    backward<<<batch * heads, N, 0, (cudaStream_t)stream>>>(time, heads, r, w, k, v, a, b, sa, states,
                                                            dy, dr, dw, dk, dv, da, db);
    return cudaGetLastError();
}
