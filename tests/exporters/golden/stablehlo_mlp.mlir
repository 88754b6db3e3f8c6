module @graphtool {
  func.func public @main(%x: tensor<1x784xf32> loc("x")) -> (tensor<1x10xf32> {jax.result_info = "output"}) {
    %fc1.weight = stablehlo.constant {graphtool.parameter = "fc1.weight"} dense_resource<__elided__> : tensor<256x784xf32>
    %fc1.bias = stablehlo.constant {graphtool.parameter = "fc1.bias"} dense_resource<__elided__> : tensor<256xf32>
    %fc2.weight = stablehlo.constant {graphtool.parameter = "fc2.weight"} dense_resource<__elided__> : tensor<128x256xf32>
    %fc2.bias = stablehlo.constant {graphtool.parameter = "fc2.bias"} dense_resource<__elided__> : tensor<128xf32>
    %fc3.weight = stablehlo.constant {graphtool.parameter = "fc3.weight"} dense_resource<__elided__> : tensor<10x128xf32>
    %fc3.bias = stablehlo.constant {graphtool.parameter = "fc3.bias"} dense<[-0.07716226, -0.036970824, 0.081515945, 0.04446604, 0.04182495, -0.06844892, -0.076389916, 0.056061525, 0.030216044, -0.08212126]> : tensor<10xf32>
    %fc1.linear = stablehlo.composite "graphtool.linear" %x, %fc1.weight, %fc1.bias {decomposition = @linear} : (tensor<1x784xf32>, tensor<256x784xf32>, tensor<256xf32>) -> tensor<1x256xf32> loc(#loc1)
    %relu = stablehlo.composite "graphtool.relu" %fc1.linear {decomposition = @relu} : (tensor<1x256xf32>) -> tensor<1x256xf32> loc(#loc1)
    %fc2.linear = stablehlo.composite "graphtool.linear" %relu, %fc2.weight, %fc2.bias {decomposition = @linear_2} : (tensor<1x256xf32>, tensor<128x256xf32>, tensor<128xf32>) -> tensor<1x128xf32> loc(#loc2)
    %relu_2 = stablehlo.composite "graphtool.relu" %fc2.linear {decomposition = @relu_2} : (tensor<1x128xf32>) -> tensor<1x128xf32> loc(#loc2)
    %fc3.linear = stablehlo.composite "graphtool.linear" %relu_2, %fc3.weight, %fc3.bias {decomposition = @linear_3} : (tensor<1x128xf32>, tensor<10x128xf32>, tensor<10xf32>) -> tensor<1x10xf32> loc(#loc3)
    return %fc3.linear : tensor<1x10xf32>
  }
  func.func private @linear(%x0: tensor<1x784xf32>, %x1: tensor<256x784xf32>, %x2: tensor<256xf32>) -> tensor<1x256xf32> {
    %matmul = stablehlo.dot_general %x0, %x1, contracting_dims = [1] x [1] : (tensor<1x784xf32>, tensor<256x784xf32>) -> tensor<1x256xf32>
    %add.broadcast_in_dim = stablehlo.broadcast_in_dim %x2, dims = [1] : (tensor<256xf32>) -> tensor<1x256xf32>
    %add = stablehlo.add %matmul, %add.broadcast_in_dim : tensor<1x256xf32>
    return %add : tensor<1x256xf32>
  }
  func.func private @relu(%x0: tensor<1x256xf32>) -> tensor<1x256xf32> {
    %c0 = stablehlo.constant dense<0.0> : tensor<1x256xf32>
    %le = stablehlo.compare LE, %x0, %c0, FLOAT : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xi1>
    %select = stablehlo.select %le, %c0, %x0 : (tensor<1x256xi1>, tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
    return %select : tensor<1x256xf32>
  }
  func.func private @linear_2(%x0: tensor<1x256xf32>, %x1: tensor<128x256xf32>, %x2: tensor<128xf32>) -> tensor<1x128xf32> {
    %matmul = stablehlo.dot_general %x0, %x1, contracting_dims = [1] x [1] : (tensor<1x256xf32>, tensor<128x256xf32>) -> tensor<1x128xf32>
    %add.broadcast_in_dim = stablehlo.broadcast_in_dim %x2, dims = [1] : (tensor<128xf32>) -> tensor<1x128xf32>
    %add = stablehlo.add %matmul, %add.broadcast_in_dim : tensor<1x128xf32>
    return %add : tensor<1x128xf32>
  }
  func.func private @relu_2(%x0: tensor<1x128xf32>) -> tensor<1x128xf32> {
    %c0 = stablehlo.constant dense<0.0> : tensor<1x128xf32>
    %le = stablehlo.compare LE, %x0, %c0, FLOAT : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xi1>
    %select = stablehlo.select %le, %c0, %x0 : (tensor<1x128xi1>, tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
    return %select : tensor<1x128xf32>
  }
  func.func private @linear_3(%x0: tensor<1x128xf32>, %x1: tensor<10x128xf32>, %x2: tensor<10xf32>) -> tensor<1x10xf32> {
    %matmul = stablehlo.dot_general %x0, %x1, contracting_dims = [1] x [1] : (tensor<1x128xf32>, tensor<10x128xf32>) -> tensor<1x10xf32>
    %add.broadcast_in_dim = stablehlo.broadcast_in_dim %x2, dims = [1] : (tensor<10xf32>) -> tensor<1x10xf32>
    %add = stablehlo.add %matmul, %add.broadcast_in_dim : tensor<1x10xf32>
    return %add : tensor<1x10xf32>
  }
}
#loc1 = loc("MLP.forward"("mlp.py":19:0))
#loc2 = loc("MLP.forward"("mlp.py":20:0))
#loc3 = loc("MLP.forward"("mlp.py":21:0))
