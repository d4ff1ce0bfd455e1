declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)
define void @jl_column_reduction(ptr %buffers, ptr %sizes, i64 %lo, i64 %hi) nounwind {
entry:
  %b0.slot = getelementptr ptr, ptr %buffers, i64 0
  %b0 = load ptr, ptr %b0.slot
  %b1.slot = getelementptr ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %b1.slot
  %v1 = sub i64 %hi, %lo
  %v2 = and i64 %v1, 7
  %v3 = sub i64 %hi, %v2
  br label %loop4
loop4:
  %v6 = phi i64 [ %lo, %entry ], [ %v21, %after10 ]
  %v8 = icmp slt i64 %v6, %v3
  br i1 %v8, label %body7, label %after5
body7:
  br label %loop9
loop9:
  %v11 = phi i64 [ 0, %body7 ], [ %v18, %loop9 ]
  %v12 = phi <8 x float> [ splat (float 0.0), %body7 ], [ %v17, %loop9 ]
  %v13 = mul i64 %v11, 50
  %v14 = add i64 %v13, %v6
  %v15 = getelementptr float, ptr %b0, i64 %v14
  %v16 = load <8 x float>, ptr %v15, align 4
  %v17 = fadd <8 x float> %v12, %v16
  %v18 = add nsw i64 %v11, 1
  %v19 = icmp slt i64 %v18, 30
  br i1 %v19, label %loop9, label %after10
after10:
  %v20 = getelementptr float, ptr %b1, i64 %v6
  store <8 x float> %v17, ptr %v20, align 4
  %v21 = add nsw i64 %v6, 8
  br label %loop4
after5:
  br label %loop22
loop22:
  %v24 = phi i64 [ %v3, %after5 ], [ %v45, %after34 ]
  %v26 = icmp slt i64 %v24, %hi
  br i1 %v26, label %body25, label %after23
body25:
  %v27 = sub i64 %hi, %v24
  %v28 = trunc i64 %v27 to i32
  %v29 = add <8 x i32> splat (i32 0), <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v30 = insertelement <8 x i32> poison, i32 %v28, i32 0
  %v31 = shufflevector <8 x i32> %v30, <8 x i32> poison, <8 x i32> zeroinitializer
  %v32 = icmp slt <8 x i32> %v29, %v31
  br label %loop33
loop33:
  %v35 = phi i64 [ 0, %body25 ], [ %v42, %loop33 ]
  %v36 = phi <8 x float> [ splat (float 0.0), %body25 ], [ %v41, %loop33 ]
  %v37 = mul i64 %v35, 50
  %v38 = add i64 %v37, %v24
  %v39 = getelementptr float, ptr %b0, i64 %v38
  %v40 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v39, i32 4, <8 x i1> %v32, <8 x float> zeroinitializer)
  %v41 = fadd <8 x float> %v36, %v40
  %v42 = add nsw i64 %v35, 1
  %v43 = icmp slt i64 %v42, 30
  br i1 %v43, label %loop33, label %after34
after34:
  %v44 = getelementptr float, ptr %b1, i64 %v24
  call void @llvm.masked.store.v8f32.p0(<8 x float> %v41, ptr %v44, i32 4, <8 x i1> %v32)
  %v45 = add nsw i64 %v24, 8
  br label %loop22
after23:
  ret void
}
