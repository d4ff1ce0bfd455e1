extern "C" __global__ void jl_row_softmax(const float* b0_x, float* b1_out, i64 lo, i64 hi) {
    __shared__ float b2_scratch[100];
    __shared__ float v2_shared[256];
    __shared__ float v9_shared[256];
    for (i64 v0 = lo + blockIdx.x; v0 < hi; v0 += gridDim.x) {
        const i64 v1 = jl_mul(v0, 100LL);
        float v2 = jl_bitcast<float>(0xFF800000u);
        for (i64 v3 = threadIdx.x; v3 < 100; v3 += blockDim.x) {
            const i64 v4 = jl_add(v1, v3);
            const float v5 = b0_x[v4];
            const float v6 = jl_max(v2, v5);
            v2 = v6;
        }
        __syncthreads();
        v2_shared[threadIdx.x] = v2;
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) {
                const float v7 = jl_max(v2_shared[threadIdx.x], v2_shared[threadIdx.x + half]);
                v2_shared[threadIdx.x] = v7;
            }
            __syncthreads();
        }
        const float v8 = v2_shared[0];
        __syncthreads();
        float v9 = 0.0f;
        for (i64 v10 = threadIdx.x; v10 < 100; v10 += blockDim.x) {
            const i64 v11 = jl_add(v1, v10);
            const float v12 = b0_x[v11];
            const float v13 = v12 - v8;
            const float v14 = expf(v13);
            b2_scratch[v10] = v14;
            const float v15 = v9 + v14;
            v9 = v15;
        }
        __syncthreads();
        v9_shared[threadIdx.x] = v9;
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) {
                const float v16 = v9_shared[threadIdx.x] + v9_shared[threadIdx.x + half];
                v9_shared[threadIdx.x] = v16;
            }
            __syncthreads();
        }
        const float v17 = v9_shared[0];
        __syncthreads();
        for (i64 v18 = threadIdx.x; v18 < 100; v18 += blockDim.x) {
            const i64 v19 = jl_add(v1, v18);
            const float v20 = b2_scratch[v18];
            const float v21 = v20 / v17;
            b1_out[v19] = v21;
        }
        __syncthreads();
    }
}
