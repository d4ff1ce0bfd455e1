declare <8 x float> @llvm.copysign.v8f32(<8 x float>, <8 x float>)
declare <8 x float> @llvm.fabs.v8f32(<8 x float>)
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)
declare <8 x float> @llvm.roundeven.v8f32(<8 x float>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)
define void @jl_fused_elementwise(ptr %buffers, ptr %sizes, i64 %lo, i64 %hi, ptr %frame) nounwind {
entry:
  %b0.slot = getelementptr ptr, ptr %buffers, i64 0
  %b0 = load ptr, ptr %b0.slot
  %b1.slot = getelementptr ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %b1.slot
  %b2.slot = getelementptr ptr, ptr %buffers, i64 2
  %b2 = load ptr, ptr %b2.slot
  %v1 = getelementptr i64, ptr %sizes, i64 0
  %v2 = load i64, ptr %v1
  %v3 = sub i64 %hi, %lo
  %v4 = and i64 %v3, 7
  %v5 = sub i64 %hi, %v4
  br label %loop6
loop6:
  %v8 = phi i64 [ %lo, %entry ], [ %v51, %body9 ]
  %v10 = icmp slt i64 %v8, %v5
  br i1 %v10, label %body9, label %after7
body9:
  %v11 = getelementptr float, ptr %b0, i64 %v8
  %v12 = load <8 x float>, ptr %v11, align 4
  %v13 = getelementptr float, ptr %b1, i64 %v8
  %v14 = load <8 x float>, ptr %v13, align 4
  %v15 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v12, <8 x float> %v14, <8 x float> splat (float 0x3FE0000000000000))
  %v16 = call <8 x float> @llvm.fabs.v8f32(<8 x float> %v15)
  %v17 = fadd <8 x float> %v16, %v16
  %v18 = fcmp olt <8 x float> splat (float 20.0), %v17
  %v19 = select <8 x i1> %v18, <8 x float> splat (float 20.0), <8 x float> %v17
  %v20 = fmul <8 x float> %v19, splat (float 0x3FF7154760000000)
  %v21 = call <8 x float> @llvm.roundeven.v8f32(<8 x float> %v20)
  %v22 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v21, <8 x float> splat (float 0xBFE62E4000000000), <8 x float> %v19)
  %v23 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v21, <8 x float> splat (float 0xBEB7F7D1C0000000), <8 x float> %v22)
  %v24 = fptosi <8 x float> %v21 to <8 x i32>
  %v25 = add <8 x i32> %v24, splat (i32 127)
  %v26 = shl <8 x i32> %v25, splat (i32 23)
  %v27 = bitcast <8 x i32> %v26 to <8 x float>
  %v28 = call <8 x float> @llvm.fma.v8f32(<8 x float> splat (float 0x3F2A1256C0000000), <8 x float> %v23, <8 x float> splat (float 0x3F56D43B00000000))
  %v29 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v28, <8 x float> %v23, <8 x float> splat (float 0x3F81110E00000000))
  %v30 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v29, <8 x float> %v23, <8 x float> splat (float 0x3FA5554E80000000))
  %v31 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v30, <8 x float> %v23, <8 x float> splat (float 0x3FC5555560000000))
  %v32 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v31, <8 x float> %v23, <8 x float> splat (float 0x3FE0000000000000))
  %v33 = fmul <8 x float> %v23, %v23
  %v34 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v33, <8 x float> %v32, <8 x float> %v23)
  %v35 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v34, <8 x float> %v27, <8 x float> %v27)
  %v36 = fadd <8 x float> %v35, splat (float 1.0)
  %v37 = fdiv <8 x float> splat (float 2.0), %v36
  %v38 = fsub <8 x float> splat (float 1.0), %v37
  %v39 = fmul <8 x float> %v15, %v15
  %v40 = fmul <8 x float> %v16, %v39
  %v41 = call <8 x float> @llvm.fma.v8f32(<8 x float> splat (float 0x3F62C645E0000000), <8 x float> %v39, <8 x float> splat (float 0xBF81163280000000))
  %v42 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v41, <8 x float> %v39, <8 x float> splat (float 0x3F964A8680000000))
  %v43 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v42, <8 x float> %v39, <8 x float> splat (float 0xBFABA08B40000000))
  %v44 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v43, <8 x float> %v39, <8 x float> splat (float 0x3FC1110E80000000))
  %v45 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v44, <8 x float> %v39, <8 x float> splat (float 0xBFD5555560000000))
  %v46 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v40, <8 x float> %v45, <8 x float> %v16)
  %v47 = fcmp olt <8 x float> %v16, splat (float 0x3FE4000000000000)
  %v48 = select <8 x i1> %v47, <8 x float> %v46, <8 x float> %v38
  %v49 = call <8 x float> @llvm.copysign.v8f32(<8 x float> %v48, <8 x float> %v15)
  %v50 = getelementptr float, ptr %b2, i64 %v8
  store <8 x float> %v49, ptr %v50, align 4
  %v51 = add nsw i64 %v8, 8
  br label %loop6
after7:
  br label %loop52
loop52:
  %v54 = phi i64 [ %v5, %after7 ], [ %v103, %body55 ]
  %v56 = icmp slt i64 %v54, %hi
  br i1 %v56, label %body55, label %after53
body55:
  %v57 = sub i64 %hi, %v54
  %v58 = trunc i64 %v57 to i32
  %v59 = add <8 x i32> splat (i32 0), <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v60 = insertelement <8 x i32> poison, i32 %v58, i32 0
  %v61 = shufflevector <8 x i32> %v60, <8 x i32> poison, <8 x i32> zeroinitializer
  %v62 = icmp slt <8 x i32> %v59, %v61
  %v63 = getelementptr float, ptr %b0, i64 %v54
  %v64 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v63, i32 4, <8 x i1> %v62, <8 x float> zeroinitializer)
  %v65 = getelementptr float, ptr %b1, i64 %v54
  %v66 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v65, i32 4, <8 x i1> %v62, <8 x float> zeroinitializer)
  %v67 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v64, <8 x float> %v66, <8 x float> splat (float 0x3FE0000000000000))
  %v68 = call <8 x float> @llvm.fabs.v8f32(<8 x float> %v67)
  %v69 = fadd <8 x float> %v68, %v68
  %v70 = fcmp olt <8 x float> splat (float 20.0), %v69
  %v71 = select <8 x i1> %v70, <8 x float> splat (float 20.0), <8 x float> %v69
  %v72 = fmul <8 x float> %v71, splat (float 0x3FF7154760000000)
  %v73 = call <8 x float> @llvm.roundeven.v8f32(<8 x float> %v72)
  %v74 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v73, <8 x float> splat (float 0xBFE62E4000000000), <8 x float> %v71)
  %v75 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v73, <8 x float> splat (float 0xBEB7F7D1C0000000), <8 x float> %v74)
  %v76 = fptosi <8 x float> %v73 to <8 x i32>
  %v77 = add <8 x i32> %v76, splat (i32 127)
  %v78 = shl <8 x i32> %v77, splat (i32 23)
  %v79 = bitcast <8 x i32> %v78 to <8 x float>
  %v80 = call <8 x float> @llvm.fma.v8f32(<8 x float> splat (float 0x3F2A1256C0000000), <8 x float> %v75, <8 x float> splat (float 0x3F56D43B00000000))
  %v81 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v80, <8 x float> %v75, <8 x float> splat (float 0x3F81110E00000000))
  %v82 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v81, <8 x float> %v75, <8 x float> splat (float 0x3FA5554E80000000))
  %v83 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v82, <8 x float> %v75, <8 x float> splat (float 0x3FC5555560000000))
  %v84 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v83, <8 x float> %v75, <8 x float> splat (float 0x3FE0000000000000))
  %v85 = fmul <8 x float> %v75, %v75
  %v86 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v85, <8 x float> %v84, <8 x float> %v75)
  %v87 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v86, <8 x float> %v79, <8 x float> %v79)
  %v88 = fadd <8 x float> %v87, splat (float 1.0)
  %v89 = fdiv <8 x float> splat (float 2.0), %v88
  %v90 = fsub <8 x float> splat (float 1.0), %v89
  %v91 = fmul <8 x float> %v67, %v67
  %v92 = fmul <8 x float> %v68, %v91
  %v93 = call <8 x float> @llvm.fma.v8f32(<8 x float> splat (float 0x3F62C645E0000000), <8 x float> %v91, <8 x float> splat (float 0xBF81163280000000))
  %v94 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v93, <8 x float> %v91, <8 x float> splat (float 0x3F964A8680000000))
  %v95 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v94, <8 x float> %v91, <8 x float> splat (float 0xBFABA08B40000000))
  %v96 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v95, <8 x float> %v91, <8 x float> splat (float 0x3FC1110E80000000))
  %v97 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v96, <8 x float> %v91, <8 x float> splat (float 0xBFD5555560000000))
  %v98 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v92, <8 x float> %v97, <8 x float> %v68)
  %v99 = fcmp olt <8 x float> %v68, splat (float 0x3FE4000000000000)
  %v100 = select <8 x i1> %v99, <8 x float> %v98, <8 x float> %v90
  %v101 = call <8 x float> @llvm.copysign.v8f32(<8 x float> %v100, <8 x float> %v67)
  %v102 = getelementptr float, ptr %b2, i64 %v54
  call void @llvm.masked.store.v8f32.p0(<8 x float> %v101, ptr %v102, i32 4, <8 x i1> %v62)
  %v103 = add nsw i64 %v54, 8
  br label %loop52
after53:
  ret void
}
