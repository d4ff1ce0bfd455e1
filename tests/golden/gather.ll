declare <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x float>)
define void @jl_gather(ptr %buffers, ptr %sizes, i64 %lo, i64 %hi, ptr %frame) nounwind {
entry:
  %b0.slot = getelementptr ptr, ptr %buffers, i64 0
  %b0 = load ptr, ptr %b0.slot
  %b1.slot = getelementptr ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %b1.slot
  %b2.slot = getelementptr ptr, ptr %buffers, i64 2
  %b2 = load ptr, ptr %b2.slot
  %v1 = sub i64 %hi, %lo
  %v2 = and i64 %v1, 7
  %v3 = sub i64 %hi, %v2
  br label %loop4
loop4:
  %v6 = phi i64 [ %lo, %entry ], [ %v18, %body7 ]
  %v8 = icmp slt i64 %v6, %v3
  br i1 %v8, label %body7, label %after5
body7:
  %v9 = getelementptr i32, ptr %b1, i64 %v6
  %v10 = load <8 x i32>, ptr %v9, align 4
  %v11 = sext <8 x i32> %v10 to <8 x i64>
  %v12 = icmp sge <8 x i64> %v11, splat (i64 0)
  %v13 = icmp slt <8 x i64> %v11, splat (i64 64)
  %v14 = and <8 x i1> %v12, %v13
  %v15 = getelementptr float, ptr %b0, <8 x i64> %v11
  %v16 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %v15, i32 4, <8 x i1> %v14, <8 x float> zeroinitializer)
  %v17 = getelementptr float, ptr %b2, i64 %v6
  store <8 x float> %v16, ptr %v17, align 4
  %v18 = add nsw i64 %v6, 8
  br label %loop4
after5:
  ret void
}
