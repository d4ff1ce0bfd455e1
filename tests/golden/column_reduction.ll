declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)
define void @jl_column_reduction(ptr %buffers, ptr %sizes, i64 %lo, i64 %hi, ptr %frame) nounwind {
entry:
  %b0.slot = getelementptr ptr, ptr %buffers, i64 0
  %b0 = load ptr, ptr %b0.slot
  %b1.slot = getelementptr ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %b1.slot
  br label %loop1
loop1:
  %v3 = phi i64 [ 0, %entry ], [ %v16, %after5 ]
  br label %loop4
loop4:
  %v6 = phi i64 [ 0, %loop1 ], [ %v13, %loop4 ]
  %v7 = phi <8 x float> [ splat (float 0.0), %loop1 ], [ %v12, %loop4 ]
  %v8 = mul i64 %v6, 50
  %v9 = add i64 %v8, %v3
  %v10 = getelementptr float, ptr %b0, i64 %v9
  %v11 = load <8 x float>, ptr %v10, align 4
  %v12 = fadd <8 x float> %v7, %v11
  %v13 = add nsw i64 %v6, 1
  %v14 = icmp slt i64 %v13, 30
  br i1 %v14, label %loop4, label %after5
after5:
  %v15 = getelementptr float, ptr %b1, i64 %v3
  store <8 x float> %v12, ptr %v15, align 4
  %v16 = add nsw i64 %v3, 8
  %v17 = icmp slt i64 %v16, 48
  br i1 %v17, label %loop1, label %after2
after2:
  br label %loop18
loop18:
  %v20 = phi i64 [ 0, %after2 ], [ %v27, %loop18 ]
  %v21 = phi <8 x float> [ splat (float 0.0), %after2 ], [ %v26, %loop18 ]
  %v22 = mul i64 %v20, 50
  %v23 = add i64 %v22, 48
  %v24 = getelementptr float, ptr %b0, i64 %v23
  %v25 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v24, i32 4, <8 x i1> <i1 1, i1 1, i1 0, i1 0, i1 0, i1 0, i1 0, i1 0>, <8 x float> zeroinitializer)
  %v26 = fadd <8 x float> %v21, %v25
  %v27 = add nsw i64 %v20, 1
  %v28 = icmp slt i64 %v27, 30
  br i1 %v28, label %loop18, label %after19
after19:
  %v29 = getelementptr float, ptr %b1, i64 48
  call void @llvm.masked.store.v8f32.p0(<8 x float> %v26, ptr %v29, i32 4, <8 x i1> <i1 1, i1 1, i1 0, i1 0, i1 0, i1 0, i1 0, i1 0>)
  ret void
}
