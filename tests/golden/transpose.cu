extern "C" __global__ void jl_transpose(const float* b0_x, float* b1_out, i64 lo, i64 hi) {
    for (i64 v0 = lo + blockIdx.x; v0 < hi; v0 += gridDim.x) {
        const i64 v1 = jl_mul(v0, 24LL);
        for (i64 v2 = threadIdx.x; v2 < 24; v2 += blockDim.x) {
            const i64 v3 = jl_add(v1, v2);
            const i64 v4 = jl_mul(v2, 40LL);
            const i64 v5 = jl_add(v4, v0);
            const float v6 = b0_x[v5];
            b1_out[v3] = v6;
        }
        __syncthreads();
    }
}
