declare <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x float>)
define void @jl_transpose(ptr %buffers, ptr %sizes, i64 %lo, i64 %hi, ptr %frame) nounwind {
entry:
  %b0.slot = getelementptr ptr, ptr %buffers, i64 0
  %b0 = load ptr, ptr %b0.slot
  %b1.slot = getelementptr ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %b1.slot
  br label %loop1
loop1:
  %v3 = phi i64 [ %lo, %entry ], [ %v20, %after8 ]
  %v5 = icmp slt i64 %v3, %hi
  br i1 %v5, label %body4, label %after2
body4:
  %v6 = mul i64 %v3, 24
  br label %loop7
loop7:
  %v9 = phi i64 [ 0, %body4 ], [ %v18, %loop7 ]
  %v10 = add i64 %v6, %v9
  %v11 = mul i64 %v9, 40
  %v12 = add i64 %v11, %v3
  %v13 = getelementptr float, ptr %b0, i64 %v12
  %v14 = add <8 x i64> splat (i64 0), <i64 0, i64 40, i64 80, i64 120, i64 160, i64 200, i64 240, i64 280>
  %v15 = getelementptr float, ptr %v13, <8 x i64> %v14
  %v16 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %v15, i32 4, <8 x i1> splat (i1 true), <8 x float> zeroinitializer)
  %v17 = getelementptr float, ptr %b1, i64 %v10
  store <8 x float> %v16, ptr %v17, align 4
  %v18 = add nsw i64 %v9, 8
  %v19 = icmp slt i64 %v18, 24
  br i1 %v19, label %loop7, label %after8
after8:
  %v20 = add nsw i64 %v3, 1
  br label %loop1
after2:
  ret void
}
