module @small_one {
  func.func public @main(%a_0_.b: tensor<2x3xf32> loc("a[0].b"), %_2nd_arg: tensor<2x3xf32> {tf.aliasing_output = 0 : i32} loc("2nd arg")) -> (tensor<2x3xf32> {jax.result_info = "out"}, tensor<2x3xi64> {jax.result_info = "order"}) {
    %c2 = stablehlo.constant dense<2.0> : tensor<2x3xf32>
    %c0xFF800000 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c0 = stablehlo.constant dense<0.0> : tensor<f32>
    %mul = stablehlo.multiply %a_0_.b, %c2 : tensor<2x3xf32> loc(#loc1)
    %reduce_max.reduce = stablehlo.reduce(%_2nd_arg init: %c0xFF800000) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %reduce_max = stablehlo.reshape %reduce_max.reduce : (tensor<2xf32>) -> tensor<2x1xf32>
    %add.broadcast_in_dim = stablehlo.broadcast_in_dim %reduce_max, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
    %add = stablehlo.add %mul, %add.broadcast_in_dim : tensor<2x3xf32>
    %reduce_max.reduce_2 = stablehlo.reduce(%add init: %c0xFF800000) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %reduce_max_2 = stablehlo.reshape %reduce_max.reduce_2 : (tensor<2xf32>) -> tensor<2x1xf32>
    %sub.broadcast_in_dim = stablehlo.broadcast_in_dim %reduce_max_2, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
    %sub = stablehlo.subtract %add, %sub.broadcast_in_dim : tensor<2x3xf32>
    %exp = stablehlo.exponential %sub : tensor<2x3xf32>
    %reduce_sum.reduce = stablehlo.reduce(%exp init: %c0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %reduce_sum = stablehlo.reshape %reduce_sum.reduce : (tensor<2xf32>) -> tensor<2x1xf32>
    %div.broadcast_in_dim = stablehlo.broadcast_in_dim %reduce_sum, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
    %softmax = stablehlo.divide %exp, %div.broadcast_in_dim : tensor<2x3xf32>
    %sort.iota = stablehlo.iota dim = 1 : tensor<2x3xi64>
    %sort:2 = "stablehlo.sort"(%_2nd_arg, %sort.iota) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i64>, %j: tensor<i64>):
      %sort.test = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %sort.test_2 = stablehlo.compare NE, %b, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %sort.test_3 = stablehlo.compare EQ, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %sort.and = stablehlo.and %sort.test_2, %sort.test_3 : tensor<i1>
      %sort.or = stablehlo.or %sort.test, %sort.and : tensor<i1>
      stablehlo.return %sort.or : tensor<i1>
    }) : (tensor<2x3xf32>, tensor<2x3xi64>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
    return %softmax, %sort#1 : tensor<2x3xf32>, tensor<2x3xi64>
  }
}
#loc1 = loc("Net.forward"("net.py":7:0))
