extern "C" __global__ void jl_column_reduction(const float* b0_x, float* b1_out, i64 lo, i64 hi) {
    for (i64 v0 = lo + (i64)blockIdx.x * blockDim.x + threadIdx.x; v0 < hi; v0 += (i64)gridDim.x * blockDim.x) {
        float v1 = 0.0f;
        for (i64 v2 = 0; v2 < 30; v2 += 1) {
            const i64 v3 = jl_mul(v2, 50LL);
            const i64 v4 = jl_add(v3, v0);
            const float v5 = b0_x[v4];
            const float v6 = v1 + v5;
            v1 = v6;
        }
        b1_out[v0] = v1;
    }
}
