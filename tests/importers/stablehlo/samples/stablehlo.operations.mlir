func.func public @main(%i0_0: tensor<3x5xf32>, %i0_1: tensor<3x5xf32>, %i1_0: tensor<3x5x4xf32>, %i1_1: tensor<3x2xi32>, %i2_0: tensor<2x3x4xf32>, %i2_1: tensor<2x5x4xf32>, %i3_0: tensor<4x3x5xf32>, %i3_1: tensor<3xf32>, %i3_2: tensor<3xf32>, %i4_0: tensor<4x3x5xf32>, %i4_1: tensor<3xf32>, %i4_2: tensor<3xf32>, %i4_3: tensor<3xf32>, %i4_4: tensor<4x3x5xf32>, %i5_0: tensor<4x3x5xf32>, %i5_1: tensor<3xf32>, %i5_2: tensor<3xf32>, %i5_3: tensor<3xf32>, %i5_4: tensor<3xf32>, %i6_0: tensor<2xui64>, %i7_0: tensor<2xui64>, %i8_0: tensor<2xui64>, %i9_0: tensor<2x4xf32>, %i10_0: tensor<2x4xf32>, %i11_0: tensor<5x4xf32>, %i11_1: tensor<5x4xi32>, %i11_2: tensor<2x1xi32>, %i11_3: tensor<2x4xf32>, %i11_4: tensor<2x4xi32>, %i12_0: tensor<3x5xf32>, %i12_1: tensor<3x2xi32>, %i12_2: tensor<3x2xf32>, %i13_0: tensor<5x4xcomplex<f32>>, %i13_1: tensor<3x2xi32>, %i13_2: tensor<3x2x3xcomplex<f32>>, %i14_0: tensor<4x6xi32>, %i14_1: tensor<4x6xf32>, %i15_0: tensor<25xi8>, %i15_1: tensor<25xi8>, %i16_0: tensor<25xui8>, %i16_1: tensor<25xui8>, %i17_0: tensor<3x5xcomplex<f32>>, %i17_1: tensor<5xcomplex<f32>>, %i18_0: tensor<3x5xf32>, %i18_1: tensor<f32>, %i19_0: tensor<3x5xi64>, %i19_1: tensor<3x5xi64>, %i20_0: tensor<3x5xcomplex<f32>>, %i21_0: tensor<3x5xcomplex<f32>>, %i22_0: tensor<3x5xcomplex<f32>>, %i22_1: tensor<3x5xcomplex<f32>>, %i23_0: tensor<3xcomplex<f32>>, %i24_0: tensor<i32>, %i24_1: tensor<3xcomplex<f32>>, %i25_0: tensor<2x3x4xcomplex<f32>>, %i26_0: tensor<2x3x4xcomplex<f32>>, %i27_0: tensor<2x3x6x5xcomplex<f32>>, %i27_1: tensor<4x3x3x2xcomplex<f32>>, %i28_0: tensor<2x3x4xcomplex<f32>>, %i28_1: tensor<2x4x5xcomplex<f32>>, %i29_0: tensor<2x3x3xcomplex<f64>>, %i30_0: tensor<4x4xcomplex<f64>>, %i30_1: tensor<2x4xcomplex<f64>>, %i31_0: tensor<3x4xf32>, %i31_1: tensor<5x4xf32>, %i32_0: tensor<49xf32>, %i33_0: tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>, %i33_1: tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>, %i34_0: tensor<3x4x!quant.uniform<i8:f32, 0.05:-30>>, %i34_1: tensor<4x5x!quant.uniform<i8:f32:0, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>) -> (tensor<3x5xf32>, tensor<3x2x4xf32>, tensor<2x3x5xf32>, tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3x5xf32>, tensor<2xui64>, tensor<3x5xui32>, tensor<2xui64>, tensor<7xui64>, tensor<2xui64>, tensor<7xui64>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<5x4xf32>, tensor<5x4xi32>, tensor<3x5xf32>, tensor<5x4xcomplex<f32>>, tensor<4x6xi32>, tensor<4x6xf32>, tensor<25xi8>, tensor<25xui8>, tensor<3x5xcomplex<f32>>, tensor<3x5xi1>, tensor<3x5xi64>, tensor<3x5xcomplex<f32>>, tensor<3x5xcomplex<f32>>, tensor<3x5xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<2xcomplex<f32>>, tensor<2x2x4xcomplex<f32>>, tensor<2x4x4x4xcomplex<f32>>, tensor<2x3x5xcomplex<f32>>, tensor<2x3x3xcomplex<f64>>, tensor<2x4xcomplex<f64>>, tensor<3x5xf32>, tensor<49xf32>, tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>, tensor<3x5x!quant.uniform<u8:f32, 0.1:7>>) {
  %o0 = func.call @f0(%i0_0, %i0_1) : (tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<3x5xf32>)
  %o1 = func.call @f1(%i1_0, %i1_1) : (tensor<3x5x4xf32>, tensor<3x2xi32>) -> (tensor<3x2x4xf32>)
  %o2 = func.call @f2(%i2_0, %i2_1) : (tensor<2x3x4xf32>, tensor<2x5x4xf32>) -> (tensor<2x3x5xf32>)
  %o3:3 = func.call @f3(%i3_0, %i3_1, %i3_2) : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>)
  %o4:3 = func.call @f4(%i4_0, %i4_1, %i4_2, %i4_3, %i4_4) : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3x5xf32>) -> (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>)
  %o5 = func.call @f5(%i5_0, %i5_1, %i5_2, %i5_3, %i5_4) : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3x5xf32>)
  %o6:2 = func.call @f6(%i6_0) : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui32>)
  %o7:2 = func.call @f7(%i7_0) : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui64>)
  %o8:2 = func.call @f8(%i8_0) : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui64>)
  %o9 = func.call @f9(%i9_0) : (tensor<2x4xf32>) -> (tensor<2x4xf32>)
  %o10 = func.call @f10(%i10_0) : (tensor<2x4xf32>) -> (tensor<2x4xf32>)
  %o11:2 = func.call @f11(%i11_0, %i11_1, %i11_2, %i11_3, %i11_4) : (tensor<5x4xf32>, tensor<5x4xi32>, tensor<2x1xi32>, tensor<2x4xf32>, tensor<2x4xi32>) -> (tensor<5x4xf32>, tensor<5x4xi32>)
  %o12 = func.call @f12(%i12_0, %i12_1, %i12_2) : (tensor<3x5xf32>, tensor<3x2xi32>, tensor<3x2xf32>) -> (tensor<3x5xf32>)
  %o13 = func.call @f13(%i13_0, %i13_1, %i13_2) : (tensor<5x4xcomplex<f32>>, tensor<3x2xi32>, tensor<3x2x3xcomplex<f32>>) -> (tensor<5x4xcomplex<f32>>)
  %o14:2 = func.call @f14(%i14_0, %i14_1) : (tensor<4x6xi32>, tensor<4x6xf32>) -> (tensor<4x6xi32>, tensor<4x6xf32>)
  %o15 = func.call @f15(%i15_0, %i15_1) : (tensor<25xi8>, tensor<25xi8>) -> (tensor<25xi8>)
  %o16 = func.call @f16(%i16_0, %i16_1) : (tensor<25xui8>, tensor<25xui8>) -> (tensor<25xui8>)
  %o17 = func.call @f17(%i17_0, %i17_1) : (tensor<3x5xcomplex<f32>>, tensor<5xcomplex<f32>>) -> (tensor<3x5xcomplex<f32>>)
  %o18 = func.call @f18(%i18_0, %i18_1) : (tensor<3x5xf32>, tensor<f32>) -> (tensor<3x5xi1>)
  %o19 = func.call @f19(%i19_0, %i19_1) : (tensor<3x5xi64>, tensor<3x5xi64>) -> (tensor<3x5xi64>)
  %o20 = func.call @f20(%i20_0) : (tensor<3x5xcomplex<f32>>) -> (tensor<3x5xcomplex<f32>>)
  %o21 = func.call @f21(%i21_0) : (tensor<3x5xcomplex<f32>>) -> (tensor<3x5xcomplex<f32>>)
  %o22 = func.call @f22(%i22_0, %i22_1) : (tensor<3x5xcomplex<f32>>, tensor<3x5xcomplex<f32>>) -> (tensor<3x5xcomplex<f32>>)
  %o23 = func.call @f23(%i23_0) : (tensor<3xcomplex<f32>>) -> (tensor<3xcomplex<f32>>)
  %o24 = func.call @f24(%i24_0, %i24_1) : (tensor<i32>, tensor<3xcomplex<f32>>) -> (tensor<3xcomplex<f32>>)
  %o25 = func.call @f25(%i25_0) : (tensor<2x3x4xcomplex<f32>>) -> (tensor<2xcomplex<f32>>)
  %o26 = func.call @f26(%i26_0) : (tensor<2x3x4xcomplex<f32>>) -> (tensor<2x2x4xcomplex<f32>>)
  %o27 = func.call @f27(%i27_0, %i27_1) : (tensor<2x3x6x5xcomplex<f32>>, tensor<4x3x3x2xcomplex<f32>>) -> (tensor<2x4x4x4xcomplex<f32>>)
  %o28 = func.call @f28(%i28_0, %i28_1) : (tensor<2x3x4xcomplex<f32>>, tensor<2x4x5xcomplex<f32>>) -> (tensor<2x3x5xcomplex<f32>>)
  %o29 = func.call @f29(%i29_0) : (tensor<2x3x3xcomplex<f64>>) -> (tensor<2x3x3xcomplex<f64>>)
  %o30 = func.call @f30(%i30_0, %i30_1) : (tensor<4x4xcomplex<f64>>, tensor<2x4xcomplex<f64>>) -> (tensor<2x4xcomplex<f64>>)
  %o31 = func.call @f31(%i31_0, %i31_1) : (tensor<3x4xf32>, tensor<5x4xf32>) -> (tensor<3x5xf32>)
  %o32 = func.call @f32(%i32_0) : (tensor<49xf32>) -> (tensor<49xf32>)
  %o33 = func.call @f33(%i33_0, %i33_1) : (tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>, tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>) -> (tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>)
  %o34 = func.call @f34(%i34_0, %i34_1) : (tensor<3x4x!quant.uniform<i8:f32, 0.05:-30>>, tensor<4x5x!quant.uniform<i8:f32:0, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>) -> (tensor<3x5x!quant.uniform<u8:f32, 0.1:7>>)
  return %o0, %o1, %o2, %o3#0, %o3#1, %o3#2, %o4#0, %o4#1, %o4#2, %o5, %o6#0, %o6#1, %o7#0, %o7#1, %o8#0, %o8#1, %o9, %o10, %o11#0, %o11#1, %o12, %o13, %o14#0, %o14#1, %o15, %o16, %o17, %o18, %o19, %o20, %o21, %o22, %o23, %o24, %o25, %o26, %o27, %o28, %o29, %o30, %o31, %o32, %o33, %o34 : tensor<3x5xf32>, tensor<3x2x4xf32>, tensor<2x3x5xf32>, tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3x5xf32>, tensor<2xui64>, tensor<3x5xui32>, tensor<2xui64>, tensor<7xui64>, tensor<2xui64>, tensor<7xui64>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<5x4xf32>, tensor<5x4xi32>, tensor<3x5xf32>, tensor<5x4xcomplex<f32>>, tensor<4x6xi32>, tensor<4x6xf32>, tensor<25xi8>, tensor<25xui8>, tensor<3x5xcomplex<f32>>, tensor<3x5xi1>, tensor<3x5xi64>, tensor<3x5xcomplex<f32>>, tensor<3x5xcomplex<f32>>, tensor<3x5xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<2xcomplex<f32>>, tensor<2x2x4xcomplex<f32>>, tensor<2x4x4x4xcomplex<f32>>, tensor<2x3x5xcomplex<f32>>, tensor<2x3x3xcomplex<f64>>, tensor<2x4xcomplex<f64>>, tensor<3x5xf32>, tensor<49xf32>, tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>, tensor<3x5x!quant.uniform<u8:f32, 0.1:7>>
}
func.func private @f0(%a0: tensor<3x5xf32>, %a1: tensor<3x5xf32>) -> (tensor<3x5xf32>) {
  
  %r = "stablehlo.map"(%a0, %a1) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %m = stablehlo.multiply %p, %q : tensor<f32>
      %n = stablehlo.tanh %m : tensor<f32>
      stablehlo.return %n : tensor<f32>
  }) {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}

func.func private @f1(%a0: tensor<3x5x4xf32>, %a1: tensor<3x2xi32>) -> (tensor<3x2x4xf32>) {
  
  %r = "stablehlo.torch_index_select"(%a0, %a1) {dim = 1 : i64, batch_dims = 1 : i64}
      : (tensor<3x5x4xf32>, tensor<3x2xi32>) -> tensor<3x2x4xf32>
  return %r : tensor<3x2x4xf32>
}

func.func private @f2(%a0: tensor<2x3x4xf32>, %a1: tensor<2x5x4xf32>) -> (tensor<2x3x5xf32>) {
  %r = "stablehlo.einsum"(%a0, %a1) {einsum_config = "bij,bkj->bik"} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>) -> tensor<2x3x5xf32>
  return %r : tensor<2x3x5xf32>
}

func.func private @f3(%a0: tensor<4x3x5xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>) -> (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a0, %a1, %a2) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>
}

func.func private @f4(%a0: tensor<4x3x5xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<4x3x5xf32>) -> (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3x5xf32>) -> (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>
}

func.func private @f5(%a0: tensor<4x3x5xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<3xf32>) -> (tensor<4x3x5xf32>) {
  %r = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3x5xf32>
  return %r : tensor<4x3x5xf32>
}

func.func private @f6(%a0: tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui32>) {
  %r:2 = stablehlo.rng_bit_generator %a0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui32>)
  return %r#0, %r#1 : tensor<2xui64>, tensor<3x5xui32>
}

func.func private @f7(%a0: tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui64>) {
  %r:2 = stablehlo.rng_bit_generator %a0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui64>)
  return %r#0, %r#1 : tensor<2xui64>, tensor<7xui64>
}

func.func private @f8(%a0: tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui64>) {
  %r:2 = stablehlo.rng_bit_generator %a0, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui64>)
  return %r#0, %r#1 : tensor<2xui64>, tensor<7xui64>
}

func.func private @f9(%a0: tensor<2x4xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.all_reduce"(%a0) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %m = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %m : tensor<f32>
  }) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

func.func private @f10(%a0: tensor<2x4xf32>) -> (tensor<2x4xf32>) {
  %p = "stablehlo.tuple"(%a0, %a0) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tuple<tensor<2x4xf32>, tensor<2x4xf32>>
  %r = "stablehlo.get_tuple_element"(%p) {index = 1 : i32} : (tuple<tensor<2x4xf32>, tensor<2x4xf32>>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

func.func private @f11(%a0: tensor<5x4xf32>, %a1: tensor<5x4xi32>, %a2: tensor<2x1xi32>, %a3: tensor<2x4xf32>, %a4: tensor<2x4xi32>) -> (tensor<5x4xf32>, tensor<5x4xi32>) {
  
  %r:2 = "stablehlo.scatter"(%a0, %a1, %a2, %a3, %a4) ({
    ^bb0(%p: tensor<f32>, %q: tensor<i32>, %v: tensor<f32>, %w: tensor<i32>):
      %m = stablehlo.add %p, %v : tensor<f32>
      %n = stablehlo.maximum %q, %w : tensor<i32>
      stablehlo.return %m, %n : tensor<f32>, tensor<i32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
        : (tensor<5x4xf32>, tensor<5x4xi32>, tensor<2x1xi32>, tensor<2x4xf32>,
          tensor<2x4xi32>) -> (tensor<5x4xf32>, tensor<5x4xi32>)
  return %r#0, %r#1 : tensor<5x4xf32>, tensor<5x4xi32>
}

func.func private @f12(%a0: tensor<3x5xf32>, %a1: tensor<3x2xi32>, %a2: tensor<3x2xf32>) -> (tensor<3x5xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %m = stablehlo.multiply %p, %q : tensor<f32>
    %n = stablehlo.add %m, %q : tensor<f32>
    stablehlo.return %n : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>} : (tensor<3x5xf32>, tensor<3x2xi32>, tensor<3x2xf32>) -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}

func.func private @f13(%a0: tensor<5x4xcomplex<f32>>, %a1: tensor<3x2xi32>, %a2: tensor<3x2x3xcomplex<f32>>) -> (tensor<5x4xcomplex<f32>>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) ({
  ^bb0(%p: tensor<complex<f32>>, %q: tensor<complex<f32>>):
    %m = stablehlo.multiply %p, %q : tensor<complex<f32>>
    stablehlo.return %m : tensor<complex<f32>>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>} : (tensor<5x4xcomplex<f32>>, tensor<3x2xi32>, tensor<3x2x3xcomplex<f32>>) -> tensor<5x4xcomplex<f32>>
  return %r : tensor<5x4xcomplex<f32>>
}

func.func private @f14(%a0: tensor<4x6xi32>, %a1: tensor<4x6xf32>) -> (tensor<4x6xi32>, tensor<4x6xf32>) {
  
  %r:2 = "stablehlo.sort"(%a0, %a1) ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>, %v: tensor<f32>, %w: tensor<f32>):
      %a = stablehlo.convert %p : (tensor<i32>) -> tensor<f32>
      %b = stablehlo.add %a, %v : tensor<f32>
      %d = stablehlo.convert %q : (tensor<i32>) -> tensor<f32>
      %e = stablehlo.add %d, %w : tensor<f32>
      %c = stablehlo.compare LT, %b, %e : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<4x6xi32>, tensor<4x6xf32>)
      -> (tensor<4x6xi32>, tensor<4x6xf32>)
  return %r#0, %r#1 : tensor<4x6xi32>, tensor<4x6xf32>
}

func.func private @f15(%a0: tensor<25xi8>, %a1: tensor<25xi8>) -> (tensor<25xi8>) {
  %r = "stablehlo.divide"(%a0, %a1)  : (tensor<25xi8>, tensor<25xi8>) -> tensor<25xi8>
  return %r : tensor<25xi8>
}

func.func private @f16(%a0: tensor<25xui8>, %a1: tensor<25xui8>) -> (tensor<25xui8>) {
  %r = "stablehlo.remainder"(%a0, %a1)  : (tensor<25xui8>, tensor<25xui8>) -> tensor<25xui8>
  return %r : tensor<25xui8>
}

func.func private @f17(%a0: tensor<3x5xcomplex<f32>>, %a1: tensor<5xcomplex<f32>>) -> (tensor<3x5xcomplex<f32>>) {
  %r = "chlo.broadcast_add"(%a0, %a1)  : (tensor<3x5xcomplex<f32>>, tensor<5xcomplex<f32>>) -> tensor<3x5xcomplex<f32>>
  return %r : tensor<3x5xcomplex<f32>>
}

func.func private @f18(%a0: tensor<3x5xf32>, %a1: tensor<f32>) -> (tensor<3x5xi1>) {
  %r = "chlo.broadcast_compare"(%a0, %a1) {comparison_direction = #chlo<comparison_direction LT>} : (tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xi1>
  return %r : tensor<3x5xi1>
}

func.func private @f19(%a0: tensor<3x5xi64>, %a1: tensor<3x5xi64>) -> (tensor<3x5xi64>) {
  %r = "chlo.mulhi"(%a0, %a1)  : (tensor<3x5xi64>, tensor<3x5xi64>) -> tensor<3x5xi64>
  return %r : tensor<3x5xi64>
}

func.func private @f20(%a0: tensor<3x5xcomplex<f32>>) -> (tensor<3x5xcomplex<f32>>) {
  %r = "chlo.asin"(%a0)  : (tensor<3x5xcomplex<f32>>) -> tensor<3x5xcomplex<f32>>
  return %r : tensor<3x5xcomplex<f32>>
}

func.func private @f21(%a0: tensor<3x5xcomplex<f32>>) -> (tensor<3x5xcomplex<f32>>) {
  %r = "stablehlo.sqrt"(%a0)  : (tensor<3x5xcomplex<f32>>) -> tensor<3x5xcomplex<f32>>
  return %r : tensor<3x5xcomplex<f32>>
}

func.func private @f22(%a0: tensor<3x5xcomplex<f32>>, %a1: tensor<3x5xcomplex<f32>>) -> (tensor<3x5xcomplex<f32>>) {
  %r = "stablehlo.power"(%a0, %a1)  : (tensor<3x5xcomplex<f32>>, tensor<3x5xcomplex<f32>>) -> tensor<3x5xcomplex<f32>>
  return %r : tensor<3x5xcomplex<f32>>
}

func.func private @f23(%a0: tensor<3xcomplex<f32>>) -> (tensor<3xcomplex<f32>>) {
  %i = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<5> : tensor<i32>
  %w:2 = stablehlo.while(%k = %i, %v = %a0) : tensor<i32>, tensor<3xcomplex<f32>>
    cond {
      %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %m = stablehlo.multiply %v, %a0 : tensor<3xcomplex<f32>>
      %s = stablehlo.add %m, %v : tensor<3xcomplex<f32>>
      %j = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %j, %s : tensor<i32>, tensor<3xcomplex<f32>>
    }
  %r = stablehlo.add %w#1, %a0 : tensor<3xcomplex<f32>>
  return %r : tensor<3xcomplex<f32>>
}

func.func private @f24(%a0: tensor<i32>, %a1: tensor<3xcomplex<f32>>) -> (tensor<3xcomplex<f32>>) {
  %r = "stablehlo.case"(%a0) ({
      %m = stablehlo.negate %a1 : tensor<3xcomplex<f32>>
      stablehlo.return %m : tensor<3xcomplex<f32>>
    }, {
      %m = stablehlo.multiply %a1, %a1 : tensor<3xcomplex<f32>>
      stablehlo.return %m : tensor<3xcomplex<f32>>
    }, {
      stablehlo.return %a1 : tensor<3xcomplex<f32>>
    }) : (tensor<i32>) -> tensor<3xcomplex<f32>>
  return %r : tensor<3xcomplex<f32>>
}

func.func private @f25(%a0: tensor<2x3x4xcomplex<f32>>) -> (tensor<2xcomplex<f32>>) {
  %i = stablehlo.constant dense<(1.0, 0.0)> : tensor<complex<f32>>
  %r = "stablehlo.reduce"(%a0, %i) ({
  ^bb0(%p: tensor<complex<f32>>, %q: tensor<complex<f32>>):
    %m = stablehlo.multiply %p, %q : tensor<complex<f32>>
    stablehlo.return %m : tensor<complex<f32>>
  }) {dimensions = array<i64: 1, 2>} : (tensor<2x3x4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}

func.func private @f26(%a0: tensor<2x3x4xcomplex<f32>>) -> (tensor<2x2x4xcomplex<f32>>) {
  %i = stablehlo.constant dense<(1.0, 0.0)> : tensor<complex<f32>>
  %r = "stablehlo.reduce_window"(%a0, %i) ({
  ^bb0(%p: tensor<complex<f32>>, %q: tensor<complex<f32>>):
    %m = stablehlo.multiply %p, %q : tensor<complex<f32>>
    stablehlo.return %m : tensor<complex<f32>>
  }) {window_dimensions = array<i64: 1, 2, 3>, window_strides = array<i64: 1, 2, 1>, padding = dense<[[0, 0], [1, 0], [1, 1]]> : tensor<3x2xi64>} : (tensor<2x3x4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<2x2x4xcomplex<f32>>
  return %r : tensor<2x2x4xcomplex<f32>>
}

func.func private @f27(%a0: tensor<2x3x6x5xcomplex<f32>>, %a1: tensor<4x3x3x2xcomplex<f32>>) -> (tensor<2x4x4x4xcomplex<f32>>) {
  %r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x6x5xcomplex<f32>>, tensor<4x3x3x2xcomplex<f32>>) -> tensor<2x4x4x4xcomplex<f32>>
  return %r : tensor<2x4x4x4xcomplex<f32>>
}

func.func private @f28(%a0: tensor<2x3x4xcomplex<f32>>, %a1: tensor<2x4x5xcomplex<f32>>) -> (tensor<2x3x5xcomplex<f32>>) {
  %r = stablehlo.dot_general %a0, %a1, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xcomplex<f32>>, tensor<2x4x5xcomplex<f32>>) -> tensor<2x3x5xcomplex<f32>>
  return %r : tensor<2x3x5xcomplex<f32>>
}

func.func private @f29(%a0: tensor<2x3x3xcomplex<f64>>) -> (tensor<2x3x3xcomplex<f64>>) {
  %c = stablehlo.cholesky %a0, lower = true : tensor<2x3x3xcomplex<f64>>
  %i = stablehlo.iota dim = 1 : tensor<2x3x3xi32>
  %j = stablehlo.iota dim = 2 : tensor<2x3x3xi32>
  %k = stablehlo.compare GE, %i, %j : (tensor<2x3x3xi32>, tensor<2x3x3xi32>) -> tensor<2x3x3xi1>
  %z = stablehlo.constant dense<(0.0, 0.0)> : tensor<2x3x3xcomplex<f64>>
  %r = stablehlo.select %k, %c, %z : tensor<2x3x3xi1>, tensor<2x3x3xcomplex<f64>>
  return %r : tensor<2x3x3xcomplex<f64>>
}

func.func private @f30(%a0: tensor<4x4xcomplex<f64>>, %a1: tensor<2x4xcomplex<f64>>) -> (tensor<2x4xcomplex<f64>>) {
  %r = "stablehlo.triangular_solve"(%a0, %a1) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<4x4xcomplex<f64>>, tensor<2x4xcomplex<f64>>) -> tensor<2x4xcomplex<f64>>
  return %r : tensor<2x4xcomplex<f64>>
}

func.func private @f31(%a0: tensor<3x4xf32>, %a1: tensor<5x4xf32>) -> (tensor<3x5xf32>) {
  %r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, f]x[o, i]->[b, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}

func.func private @f32(%a0: tensor<49xf32>) -> (tensor<49xf32>) {
  %r = "stablehlo.reduce_precision"(%a0) {exponent_bits = 3 : i32, mantissa_bits = 23 : i32} : (tensor<49xf32>) -> tensor<49xf32>
  return %r : tensor<49xf32>
}

func.func private @f33(%a0: tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>, %a1: tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>) -> tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>> {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>, tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>) -> tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>
  return %r : tensor<3x4x!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>
}

func.func private @f34(%a: tensor<3x4x!quant.uniform<i8:f32, 0.05:-30>>, %b: tensor<4x5x!quant.uniform<i8:f32:0, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>) -> tensor<3x5x!quant.uniform<u8:f32, 0.1:7>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x4x!quant.uniform<i8:f32, 0.05:-30>>,
      tensor<4x5x!quant.uniform<i8:f32:0, {0.05:1, 0.1:-2, 0.2, 0.02:5}>>) -> tensor<3x5x!quant.uniform<u8:f32, 0.1:7>>
  return %r : tensor<3x5x!quant.uniform<u8:f32, 0.1:7>>
}
