declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)
declare <8 x float> @llvm.roundeven.v8f32(<8 x float>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)
define void @jl_row_softmax(ptr %buffers, ptr %sizes, i64 %lo, i64 %hi, ptr %frame) nounwind {
entry:
  %b0.slot = getelementptr ptr, ptr %buffers, i64 0
  %b0 = load ptr, ptr %b0.slot
  %b1.slot = getelementptr ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %b1.slot
  %b2 = alloca [100 x float], align 64
  br label %loop1
loop1:
  %v3 = phi i64 [ %lo, %entry ], [ %v151, %after133 ]
  %v5 = icmp slt i64 %v3, %hi
  br i1 %v5, label %body4, label %after2
body4:
  %v6 = mul i64 %v3, 100
  br label %loop7
loop7:
  %v9 = phi i64 [ 0, %body4 ], [ %v18, %loop7 ]
  %v10 = phi <8 x float> [ splat (float 0xFFF0000000000000), %body4 ], [ %v17, %loop7 ]
  %v11 = add i64 %v6, %v9
  %v12 = getelementptr float, ptr %b0, i64 %v11
  %v13 = load <8 x float>, ptr %v12, align 4
  %v14 = fcmp ogt <8 x float> %v10, %v13
  %v15 = select <8 x i1> %v14, <8 x float> %v10, <8 x float> %v13
  %v16 = fcmp uno <8 x float> %v10, %v10
  %v17 = select <8 x i1> %v16, <8 x float> %v10, <8 x float> %v15
  %v18 = add nsw i64 %v9, 8
  %v19 = icmp slt i64 %v18, 96
  br i1 %v19, label %loop7, label %after8
after8:
  %v20 = add i64 %v6, 96
  %v21 = getelementptr float, ptr %b0, i64 %v20
  %v22 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v21, i32 4, <8 x i1> <i1 1, i1 1, i1 1, i1 1, i1 0, i1 0, i1 0, i1 0>, <8 x float> zeroinitializer)
  %v23 = fcmp ogt <8 x float> %v17, %v22
  %v24 = select <8 x i1> %v23, <8 x float> %v17, <8 x float> %v22
  %v25 = fcmp uno <8 x float> %v17, %v17
  %v26 = select <8 x i1> %v25, <8 x float> %v17, <8 x float> %v24
  %v27 = select <8 x i1> <i1 1, i1 1, i1 1, i1 1, i1 0, i1 0, i1 0, i1 0>, <8 x float> %v26, <8 x float> %v17
  %v28 = shufflevector <8 x float> %v27, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v29 = shufflevector <8 x float> %v27, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v30 = fcmp ogt <4 x float> %v28, %v29
  %v31 = select <4 x i1> %v30, <4 x float> %v28, <4 x float> %v29
  %v32 = fcmp uno <4 x float> %v28, %v28
  %v33 = select <4 x i1> %v32, <4 x float> %v28, <4 x float> %v31
  %v34 = shufflevector <4 x float> %v33, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v35 = shufflevector <4 x float> %v33, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v36 = fcmp ogt <2 x float> %v34, %v35
  %v37 = select <2 x i1> %v36, <2 x float> %v34, <2 x float> %v35
  %v38 = fcmp uno <2 x float> %v34, %v34
  %v39 = select <2 x i1> %v38, <2 x float> %v34, <2 x float> %v37
  %v40 = extractelement <2 x float> %v39, i32 0
  %v41 = extractelement <2 x float> %v39, i32 1
  %v42 = fcmp ogt float %v40, %v41
  %v43 = select i1 %v42, float %v40, float %v41
  %v44 = fcmp uno float %v40, %v40
  %v45 = select i1 %v44, float %v40, float %v43
  br label %loop46
loop46:
  %v48 = phi i64 [ 0, %after8 ], [ %v85, %loop46 ]
  %v49 = phi <8 x float> [ splat (float 0.0), %after8 ], [ %v84, %loop46 ]
  %v50 = add i64 %v6, %v48
  %v51 = getelementptr float, ptr %b0, i64 %v50
  %v52 = load <8 x float>, ptr %v51, align 4
  %v53 = insertelement <8 x float> poison, float %v45, i32 0
  %v54 = shufflevector <8 x float> %v53, <8 x float> poison, <8 x i32> zeroinitializer
  %v55 = fsub <8 x float> %v52, %v54
  %v56 = fcmp olt <8 x float> splat (float 89.0), %v55
  %v57 = select <8 x i1> %v56, <8 x float> splat (float 89.0), <8 x float> %v55
  %v58 = fcmp ogt <8 x float> splat (float -104.0), %v57
  %v59 = select <8 x i1> %v58, <8 x float> splat (float -104.0), <8 x float> %v57
  %v60 = fmul <8 x float> %v59, splat (float 0x3FF7154760000000)
  %v61 = call <8 x float> @llvm.roundeven.v8f32(<8 x float> %v60)
  %v62 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v61, <8 x float> splat (float 0xBFE62E4000000000), <8 x float> %v59)
  %v63 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v61, <8 x float> splat (float 0xBEB7F7D1C0000000), <8 x float> %v62)
  %v64 = fptosi <8 x float> %v61 to <8 x i32>
  %v65 = call <8 x float> @llvm.fma.v8f32(<8 x float> splat (float 0x3F2A1256C0000000), <8 x float> %v63, <8 x float> splat (float 0x3F56D43B00000000))
  %v66 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v65, <8 x float> %v63, <8 x float> splat (float 0x3F81110E00000000))
  %v67 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v66, <8 x float> %v63, <8 x float> splat (float 0x3FA5554E80000000))
  %v68 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v67, <8 x float> %v63, <8 x float> splat (float 0x3FC5555560000000))
  %v69 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v68, <8 x float> %v63, <8 x float> splat (float 0x3FE0000000000000))
  %v70 = fmul <8 x float> %v63, %v63
  %v71 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v70, <8 x float> %v69, <8 x float> %v63)
  %v72 = fadd <8 x float> splat (float 1.0), %v71
  %v73 = ashr <8 x i32> %v64, splat (i32 1)
  %v74 = add <8 x i32> %v73, splat (i32 127)
  %v75 = shl <8 x i32> %v74, splat (i32 23)
  %v76 = bitcast <8 x i32> %v75 to <8 x float>
  %v77 = fmul <8 x float> %v72, %v76
  %v78 = sub <8 x i32> %v64, %v73
  %v79 = add <8 x i32> %v78, splat (i32 127)
  %v80 = shl <8 x i32> %v79, splat (i32 23)
  %v81 = bitcast <8 x i32> %v80 to <8 x float>
  %v82 = fmul <8 x float> %v77, %v81
  %v83 = getelementptr float, ptr %b2, i64 %v48
  store <8 x float> %v82, ptr %v83, align 4
  %v84 = fadd <8 x float> %v49, %v82
  %v85 = add nsw i64 %v48, 8
  %v86 = icmp slt i64 %v85, 96
  br i1 %v86, label %loop46, label %after47
after47:
  %v87 = add i64 %v6, 96
  %v88 = getelementptr float, ptr %b0, i64 %v87
  %v89 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v88, i32 4, <8 x i1> <i1 1, i1 1, i1 1, i1 1, i1 0, i1 0, i1 0, i1 0>, <8 x float> zeroinitializer)
  %v90 = insertelement <8 x float> poison, float %v45, i32 0
  %v91 = shufflevector <8 x float> %v90, <8 x float> poison, <8 x i32> zeroinitializer
  %v92 = fsub <8 x float> %v89, %v91
  %v93 = fcmp olt <8 x float> splat (float 89.0), %v92
  %v94 = select <8 x i1> %v93, <8 x float> splat (float 89.0), <8 x float> %v92
  %v95 = fcmp ogt <8 x float> splat (float -104.0), %v94
  %v96 = select <8 x i1> %v95, <8 x float> splat (float -104.0), <8 x float> %v94
  %v97 = fmul <8 x float> %v96, splat (float 0x3FF7154760000000)
  %v98 = call <8 x float> @llvm.roundeven.v8f32(<8 x float> %v97)
  %v99 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v98, <8 x float> splat (float 0xBFE62E4000000000), <8 x float> %v96)
  %v100 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v98, <8 x float> splat (float 0xBEB7F7D1C0000000), <8 x float> %v99)
  %v101 = fptosi <8 x float> %v98 to <8 x i32>
  %v102 = call <8 x float> @llvm.fma.v8f32(<8 x float> splat (float 0x3F2A1256C0000000), <8 x float> %v100, <8 x float> splat (float 0x3F56D43B00000000))
  %v103 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v102, <8 x float> %v100, <8 x float> splat (float 0x3F81110E00000000))
  %v104 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v103, <8 x float> %v100, <8 x float> splat (float 0x3FA5554E80000000))
  %v105 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v104, <8 x float> %v100, <8 x float> splat (float 0x3FC5555560000000))
  %v106 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v105, <8 x float> %v100, <8 x float> splat (float 0x3FE0000000000000))
  %v107 = fmul <8 x float> %v100, %v100
  %v108 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v106, <8 x float> %v100)
  %v109 = fadd <8 x float> splat (float 1.0), %v108
  %v110 = ashr <8 x i32> %v101, splat (i32 1)
  %v111 = add <8 x i32> %v110, splat (i32 127)
  %v112 = shl <8 x i32> %v111, splat (i32 23)
  %v113 = bitcast <8 x i32> %v112 to <8 x float>
  %v114 = fmul <8 x float> %v109, %v113
  %v115 = sub <8 x i32> %v101, %v110
  %v116 = add <8 x i32> %v115, splat (i32 127)
  %v117 = shl <8 x i32> %v116, splat (i32 23)
  %v118 = bitcast <8 x i32> %v117 to <8 x float>
  %v119 = fmul <8 x float> %v114, %v118
  %v120 = getelementptr float, ptr %b2, i64 96
  call void @llvm.masked.store.v8f32.p0(<8 x float> %v119, ptr %v120, i32 4, <8 x i1> <i1 1, i1 1, i1 1, i1 1, i1 0, i1 0, i1 0, i1 0>)
  %v121 = fadd <8 x float> %v84, %v119
  %v122 = select <8 x i1> <i1 1, i1 1, i1 1, i1 1, i1 0, i1 0, i1 0, i1 0>, <8 x float> %v121, <8 x float> %v84
  %v123 = shufflevector <8 x float> %v122, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v124 = shufflevector <8 x float> %v122, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v125 = fadd <4 x float> %v123, %v124
  %v126 = shufflevector <4 x float> %v125, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v127 = shufflevector <4 x float> %v125, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v128 = fadd <2 x float> %v126, %v127
  %v129 = extractelement <2 x float> %v128, i32 0
  %v130 = extractelement <2 x float> %v128, i32 1
  %v131 = fadd float %v129, %v130
  br label %loop132
loop132:
  %v134 = phi i64 [ 0, %after47 ], [ %v142, %loop132 ]
  %v135 = add i64 %v6, %v134
  %v136 = getelementptr float, ptr %b2, i64 %v134
  %v137 = load <8 x float>, ptr %v136, align 4
  %v138 = insertelement <8 x float> poison, float %v131, i32 0
  %v139 = shufflevector <8 x float> %v138, <8 x float> poison, <8 x i32> zeroinitializer
  %v140 = fdiv <8 x float> %v137, %v139
  %v141 = getelementptr float, ptr %b1, i64 %v135
  store <8 x float> %v140, ptr %v141, align 4
  %v142 = add nsw i64 %v134, 8
  %v143 = icmp slt i64 %v142, 96
  br i1 %v143, label %loop132, label %after133
after133:
  %v144 = add i64 %v6, 96
  %v145 = getelementptr float, ptr %b2, i64 96
  %v146 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v145, i32 4, <8 x i1> <i1 1, i1 1, i1 1, i1 1, i1 0, i1 0, i1 0, i1 0>, <8 x float> zeroinitializer)
  %v147 = insertelement <8 x float> poison, float %v131, i32 0
  %v148 = shufflevector <8 x float> %v147, <8 x float> poison, <8 x i32> zeroinitializer
  %v149 = fdiv <8 x float> %v146, %v148
  %v150 = getelementptr float, ptr %b1, i64 %v144
  call void @llvm.masked.store.v8f32.p0(<8 x float> %v149, ptr %v150, i32 4, <8 x i1> <i1 1, i1 1, i1 1, i1 1, i1 0, i1 0, i1 0, i1 0>)
  %v151 = add nsw i64 %v3, 1
  br label %loop1
after2:
  ret void
}
