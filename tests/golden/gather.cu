extern "C" __global__ void jl_gather(const float* b0_x, const int* b1_indices, float* b2_out, i64 lo, i64 hi) {
    for (i64 v0 = lo + (i64)blockIdx.x * blockDim.x + threadIdx.x; v0 < hi; v0 += (i64)gridDim.x * blockDim.x) {
        const int v1 = b1_indices[v0];
        const i64 v2 = (i64)v1;
        const bool v3 = v2 >= 0LL;
        const bool v4 = v2 < 64LL;
        const bool v5 = v3 & v4;
        const float v6 = v5 ? b0_x[v2] : (float)0;
        b2_out[v0] = v6;
    }
}
