module @main_graph {
  func.func public @main(%image: tensor<?x1x8x8xf32> {graphtool.sizes = "batch, 1, 8, 8", graphtool.bounds = {batch = [0 : i64]}} loc("image")) -> (tensor<?x10xf32> {jax.result_info = "logits"}) {
    %block1.conv.weight = stablehlo.constant {graphtool.parameter = "block1.conv.weight"} dense_resource<__elided__> : tensor<16x1x3x3xf32>
    %block1.bn.weight = stablehlo.constant {graphtool.parameter = "block1.bn.weight"} dense<[0.9771568, 1.0866085, 0.8975757, 0.90321994, 0.974235, 0.9346721, 1.0300046, 0.887979, 0.9319222, 0.9612682, 1.0060043, 1.0588992, 0.9443184, 1.0163603, 1.0073966, 0.9141478]> : tensor<16xf32>
    %block1.bn.bias = stablehlo.constant {graphtool.parameter = "block1.bn.bias"} dense<[-0.06481294, -0.056569066, -0.16393399, -0.14837313, -0.1108827, -0.16861524, -0.07432317, -0.16405915, -0.037991982, -0.10485889, -0.055065606, -0.06772271, 0.10000803, -0.051332176, -0.060757276, -0.079378255]> : tensor<16xf32>
    %block1.bn.running_mean = stablehlo.constant {graphtool.node = true} dense<[-0.030866683, -0.07169147, 0.059572354, -0.27744365, -0.060133994, 0.10511632, -0.13962878, 0.10994844, 0.02692132, -0.015513181, -0.02975576, -0.19193934, 0.01587929, -0.07260394, -0.109836265, 0.23778272]> : tensor<16xf32>
    %block1.bn.running_var = stablehlo.constant {graphtool.node = true} dense<[0.015298976, 0.029357601, 0.03256049, 0.07205016, 0.03731232, 0.032373726, 0.0416965, 0.023541853, 0.07140766, 0.03484634, 0.033889156, 0.066381186, 0.018809533, 0.038720302, 0.050627276, 0.062796295]> : tensor<16xf32>
    %block2.conv.weight = stablehlo.constant {graphtool.parameter = "block2.conv.weight"} dense_resource<__elided__> : tensor<32x16x3x3xf32>
    %block2.bn.weight = stablehlo.constant {graphtool.parameter = "block2.bn.weight"} dense<[0.9173781, 0.89484245, 0.8813564, 0.96618944, 0.96287376, 1.0526392, 0.9874052, 0.9568563, 0.87880456, 1.0582209, 0.9607958, 0.9712738, 0.96475035, 0.9734773, 0.9606032, 0.9588275, 0.9510981, 1.0154217, 0.98495317, 0.9894105, 0.95416373, 0.9331281, 0.9299947, 0.9338827, 0.96194184, 0.9134024, 1.034093, 0.90808743, 0.854515, 0.9269021, 1.0077083, 0.952375]> : tensor<32xf32>
    %block2.bn.bias = stablehlo.constant {graphtool.parameter = "block2.bn.bias"} dense<[-0.20455876, -0.16951194, -0.19994327, -0.26928118, -0.2491599, -0.2651575, -0.32937208, -0.15717839, -0.19161406, -0.25372759, -0.18568622, -0.16057357, -0.22366056, -0.22818078, -0.1935282, -0.1793196, -0.19232485, -0.23811474, -0.26716864, -0.23939149, -0.17652091, -0.15660514, -0.17416336, -0.17920528, -0.20749712, -0.17660315, -0.19957608, -0.17445502, -0.20297578, -0.22721966, -0.21509184, -0.25048807]> : tensor<32xf32>
    %block2.bn.running_mean = stablehlo.constant {graphtool.node = true} dense<[-0.41182104, -0.16645055, -0.25229576, -0.24224876, -0.3122293, -0.65517, -0.83973044, -0.5108103, -0.16907121, -0.520404, -0.4537626, 0.033077814, -0.3974017, -0.33698946, -0.3161529, -0.4095281, -0.10235045, -0.06445049, -0.47229898, -0.44550645, -0.36741722, -0.26671305, -0.11079627, -0.7773075, -0.07964356, -0.1885614, -0.46019462, -0.09436856, -0.42735305, -0.23601729, -0.3802935, -0.0021771593]> : tensor<32xf32>
    %block2.bn.running_var = stablehlo.constant {graphtool.node = true} dense<[0.19179587, 0.14085998, 0.11560517, 0.15327296, 0.11425534, 0.19759788, 0.11819916, 0.11439435, 0.14101869, 0.14456607, 0.15493923, 0.20411198, 0.07530491, 0.16641657, 0.16296503, 0.16912654, 0.14796741, 0.19105639, 0.13013273, 0.19817314, 0.12613273, 0.14749531, 0.15420346, 0.1504862, 0.13381052, 0.23248343, 0.16586936, 0.14980178, 0.13459319, 0.1480527, 0.18114822, 0.19649552]> : tensor<32xf32>
    %block3.conv.weight = stablehlo.constant {graphtool.parameter = "block3.conv.weight"} dense_resource<__elided__> : tensor<64x32x3x3xf32>
    %block3.bn.weight = stablehlo.constant {graphtool.parameter = "block3.bn.weight"} dense_resource<__elided__> : tensor<64xf32>
    %block3.bn.bias = stablehlo.constant {graphtool.parameter = "block3.bn.bias"} dense_resource<__elided__> : tensor<64xf32>
    %block3.bn.running_mean = stablehlo.constant {graphtool.node = true} dense_resource<__elided__> : tensor<64xf32>
    %block3.bn.running_var = stablehlo.constant {graphtool.node = true} dense_resource<__elided__> : tensor<64xf32>
    %table = stablehlo.constant dense<256> : tensor<1xi32>
    %head.weight = stablehlo.constant {graphtool.parameter = "head.weight"} dense_resource<__elided__> : tensor<10x256xf32>
    %head.bias = stablehlo.constant {graphtool.parameter = "head.bias"} dense<[-0.012998727, 0.054009058, -0.024563756, -0.060483392, 0.021558994, 0.025496744, 0.052905142, -0.013283489, 0.025709443, -0.056871906]> : tensor<10xf32>
    %conv2d = stablehlo.convolution(%image, %block1.conv.weight) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x1x8x8xf32>, tensor<16x1x3x3xf32>) -> tensor<?x16x8x8xf32> loc(#loc1)
    %getitem = stablehlo.composite "graphtool.batch_norm" %conv2d, %block1.bn.weight, %block1.bn.bias, %block1.bn.running_mean, %block1.bn.running_var {decomposition = @batch_norm} : (tensor<?x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x16x8x8xf32> loc(#loc1)
    %relu = stablehlo.composite "graphtool.relu" %getitem {decomposition = @relu} : (tensor<?x16x8x8xf32>) -> tensor<?x16x8x8xf32> loc(#loc1)
    %conv2d_1 = stablehlo.convolution(%relu, %block2.conv.weight) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x16x8x8xf32>, tensor<32x16x3x3xf32>) -> tensor<?x32x8x8xf32> loc(#loc1)
    %getitem_3 = stablehlo.composite "graphtool.batch_norm" %conv2d_1, %block2.bn.weight, %block2.bn.bias, %block2.bn.running_mean, %block2.bn.running_var {decomposition = @batch_norm_2} : (tensor<?x32x8x8xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<?x32x8x8xf32> loc(#loc1)
    %relu_1 = stablehlo.composite "graphtool.relu" %getitem_3 {decomposition = @relu_2} : (tensor<?x32x8x8xf32>) -> tensor<?x32x8x8xf32> loc(#loc1)
    %max_pool2d = stablehlo.composite "graphtool.max_pool" %relu_1 {composite_attributes = {window = [2 : i64, 2 : i64], strides = [2 : i64, 2 : i64], padding = [[0 : i64, 0 : i64], [0 : i64, 0 : i64]], dilation = [1 : i64, 1 : i64]}, decomposition = @max_pool} : (tensor<?x32x8x8xf32>) -> tensor<?x32x4x4xf32> loc(#loc2)
    %conv2d_2 = stablehlo.convolution(%max_pool2d, %block3.conv.weight) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x32x4x4xf32>, tensor<64x32x3x3xf32>) -> tensor<?x64x4x4xf32> loc(#loc1)
    %getitem_6 = stablehlo.composite "graphtool.batch_norm" %conv2d_2, %block3.bn.weight, %block3.bn.bias, %block3.bn.running_mean, %block3.bn.running_var {decomposition = @batch_norm_3} : (tensor<?x64x4x4xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<?x64x4x4xf32> loc(#loc1)
    %relu_2 = stablehlo.composite "graphtool.relu" %getitem_6 {decomposition = @relu_3} : (tensor<?x64x4x4xf32>) -> tensor<?x64x4x4xf32> loc(#loc1)
    %max_pool2d_1 = stablehlo.composite "graphtool.max_pool" %relu_2 {composite_attributes = {window = [2 : i64, 2 : i64], strides = [2 : i64, 2 : i64], padding = [[0 : i64, 0 : i64], [0 : i64, 0 : i64]], dilation = [1 : i64, 1 : i64]}, decomposition = @max_pool_2} : (tensor<?x64x4x4xf32>) -> tensor<?x64x2x2xf32> loc(#loc3)
    %view.get_dimension_size = stablehlo.get_dimension_size %image, dim = 0 : (tensor<?x1x8x8xf32>) -> tensor<i32> loc(#loc4)
    %view.reshape = stablehlo.reshape %view.get_dimension_size : (tensor<i32>) -> tensor<1xi32> loc(#loc4)
    %view.concatenate = stablehlo.concatenate %view.reshape, %table, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32> loc(#loc4)
    %view = stablehlo.dynamic_reshape %max_pool2d_1, %view.concatenate {graphtool.node = "batch, 256"} : (tensor<?x64x2x2xf32>, tensor<2xi32>) -> tensor<?x256xf32> loc(#loc4)
    %logits = stablehlo.composite "graphtool.linear" %view, %head.weight, %head.bias {decomposition = @linear} : (tensor<?x256xf32>, tensor<10x256xf32>, tensor<10xf32>) -> tensor<?x10xf32> loc(#loc5)
    return %logits : tensor<?x10xf32>
  }
  func.func private @batch_norm(%x0: tensor<?x16x8x8xf32>, %x1: tensor<16xf32>, %x2: tensor<16xf32>, %x3: tensor<16xf32>, %x4: tensor<16xf32>) -> tensor<?x16x8x8xf32> {
    %c1.0e-05 = stablehlo.constant dense<1.0e-05> : tensor<16xf32>
    %table = stablehlo.constant dense<16> : tensor<1xi32>
    %table_2 = stablehlo.constant dense<8> : tensor<1xi32>
    %add = stablehlo.add %x4, %c1.0e-05 : tensor<16xf32>
    %rsqrt = stablehlo.rsqrt %add : tensor<16xf32>
    %mul = stablehlo.multiply %rsqrt, %x1 : tensor<16xf32>
    %neg = stablehlo.negate %x3 : tensor<16xf32>
    %reshape = stablehlo.reshape %neg : (tensor<16xf32>) -> tensor<16x1x1xf32>
    %add.get_dimension_size = stablehlo.get_dimension_size %x0, dim = 0 : (tensor<?x16x8x8xf32>) -> tensor<i32>
    %add.reshape = stablehlo.reshape %add.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %add.concatenate = stablehlo.concatenate %add.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %add.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %reshape, %add.concatenate, dims = [1, 2, 3] {known_expanding_dimensions = array<i64: 1, 2>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<16x1x1xf32>, tensor<4xi32>) -> tensor<?x16x8x8xf32>
    %add_2 = stablehlo.add %x0, %add.dynamic_broadcast_in_dim : tensor<?x16x8x8xf32>
    %reshape_2 = stablehlo.reshape %mul : (tensor<16xf32>) -> tensor<16x1x1xf32>
    %mul.reshape = stablehlo.reshape %add.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %mul.concatenate = stablehlo.concatenate %mul.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %mul.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %reshape_2, %mul.concatenate, dims = [1, 2, 3] {known_expanding_dimensions = array<i64: 1, 2>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<16x1x1xf32>, tensor<4xi32>) -> tensor<?x16x8x8xf32>
    %mul_2 = stablehlo.multiply %add_2, %mul.dynamic_broadcast_in_dim : tensor<?x16x8x8xf32>
    %reshape_3 = stablehlo.reshape %x2 : (tensor<16xf32>) -> tensor<16x1x1xf32>
    %add.reshape_2 = stablehlo.reshape %add.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %add.concatenate_2 = stablehlo.concatenate %add.reshape_2, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %add.dynamic_broadcast_in_dim_2 = stablehlo.dynamic_broadcast_in_dim %reshape_3, %add.concatenate_2, dims = [1, 2, 3] {known_expanding_dimensions = array<i64: 1, 2>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<16x1x1xf32>, tensor<4xi32>) -> tensor<?x16x8x8xf32>
    %add_3 = stablehlo.add %mul_2, %add.dynamic_broadcast_in_dim_2 : tensor<?x16x8x8xf32>
    return %add_3 : tensor<?x16x8x8xf32>
  }
  func.func private @relu(%x0: tensor<?x16x8x8xf32>) -> tensor<?x16x8x8xf32> {
    %c0 = stablehlo.constant dense<0.0> : tensor<f32>
    %table = stablehlo.constant dense<16> : tensor<1xi32>
    %table_2 = stablehlo.constant dense<8> : tensor<1xi32>
    %le.get_dimension_size = stablehlo.get_dimension_size %x0, dim = 0 : (tensor<?x16x8x8xf32>) -> tensor<i32>
    %le.reshape = stablehlo.reshape %le.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %le.concatenate = stablehlo.concatenate %le.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %le.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %c0, %le.concatenate, dims = [] {known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64>} : (tensor<f32>, tensor<4xi32>) -> tensor<?x16x8x8xf32>
    %le = stablehlo.compare LE, %x0, %le.dynamic_broadcast_in_dim, FLOAT : (tensor<?x16x8x8xf32>, tensor<?x16x8x8xf32>) -> tensor<?x16x8x8xi1>
    %select.reshape = stablehlo.reshape %le.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %select.concatenate = stablehlo.concatenate %select.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %select.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %c0, %select.concatenate, dims = [] {known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64>} : (tensor<f32>, tensor<4xi32>) -> tensor<?x16x8x8xf32>
    %select = stablehlo.select %le, %select.dynamic_broadcast_in_dim, %x0 : (tensor<?x16x8x8xi1>, tensor<?x16x8x8xf32>, tensor<?x16x8x8xf32>) -> tensor<?x16x8x8xf32>
    return %select : tensor<?x16x8x8xf32>
  }
  func.func private @batch_norm_2(%x0: tensor<?x32x8x8xf32>, %x1: tensor<32xf32>, %x2: tensor<32xf32>, %x3: tensor<32xf32>, %x4: tensor<32xf32>) -> tensor<?x32x8x8xf32> {
    %c1.0e-05 = stablehlo.constant dense<1.0e-05> : tensor<32xf32>
    %table = stablehlo.constant dense<32> : tensor<1xi32>
    %table_2 = stablehlo.constant dense<8> : tensor<1xi32>
    %add = stablehlo.add %x4, %c1.0e-05 : tensor<32xf32>
    %rsqrt = stablehlo.rsqrt %add : tensor<32xf32>
    %mul = stablehlo.multiply %rsqrt, %x1 : tensor<32xf32>
    %neg = stablehlo.negate %x3 : tensor<32xf32>
    %reshape = stablehlo.reshape %neg : (tensor<32xf32>) -> tensor<32x1x1xf32>
    %add.get_dimension_size = stablehlo.get_dimension_size %x0, dim = 0 : (tensor<?x32x8x8xf32>) -> tensor<i32>
    %add.reshape = stablehlo.reshape %add.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %add.concatenate = stablehlo.concatenate %add.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %add.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %reshape, %add.concatenate, dims = [1, 2, 3] {known_expanding_dimensions = array<i64: 1, 2>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<32x1x1xf32>, tensor<4xi32>) -> tensor<?x32x8x8xf32>
    %add_2 = stablehlo.add %x0, %add.dynamic_broadcast_in_dim : tensor<?x32x8x8xf32>
    %reshape_2 = stablehlo.reshape %mul : (tensor<32xf32>) -> tensor<32x1x1xf32>
    %mul.reshape = stablehlo.reshape %add.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %mul.concatenate = stablehlo.concatenate %mul.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %mul.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %reshape_2, %mul.concatenate, dims = [1, 2, 3] {known_expanding_dimensions = array<i64: 1, 2>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<32x1x1xf32>, tensor<4xi32>) -> tensor<?x32x8x8xf32>
    %mul_2 = stablehlo.multiply %add_2, %mul.dynamic_broadcast_in_dim : tensor<?x32x8x8xf32>
    %reshape_3 = stablehlo.reshape %x2 : (tensor<32xf32>) -> tensor<32x1x1xf32>
    %add.reshape_2 = stablehlo.reshape %add.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %add.concatenate_2 = stablehlo.concatenate %add.reshape_2, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %add.dynamic_broadcast_in_dim_2 = stablehlo.dynamic_broadcast_in_dim %reshape_3, %add.concatenate_2, dims = [1, 2, 3] {known_expanding_dimensions = array<i64: 1, 2>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<32x1x1xf32>, tensor<4xi32>) -> tensor<?x32x8x8xf32>
    %add_3 = stablehlo.add %mul_2, %add.dynamic_broadcast_in_dim_2 : tensor<?x32x8x8xf32>
    return %add_3 : tensor<?x32x8x8xf32>
  }
  func.func private @relu_2(%x0: tensor<?x32x8x8xf32>) -> tensor<?x32x8x8xf32> {
    %c0 = stablehlo.constant dense<0.0> : tensor<f32>
    %table = stablehlo.constant dense<32> : tensor<1xi32>
    %table_2 = stablehlo.constant dense<8> : tensor<1xi32>
    %le.get_dimension_size = stablehlo.get_dimension_size %x0, dim = 0 : (tensor<?x32x8x8xf32>) -> tensor<i32>
    %le.reshape = stablehlo.reshape %le.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %le.concatenate = stablehlo.concatenate %le.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %le.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %c0, %le.concatenate, dims = [] {known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64>} : (tensor<f32>, tensor<4xi32>) -> tensor<?x32x8x8xf32>
    %le = stablehlo.compare LE, %x0, %le.dynamic_broadcast_in_dim, FLOAT : (tensor<?x32x8x8xf32>, tensor<?x32x8x8xf32>) -> tensor<?x32x8x8xi1>
    %select.reshape = stablehlo.reshape %le.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %select.concatenate = stablehlo.concatenate %select.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %select.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %c0, %select.concatenate, dims = [] {known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64>} : (tensor<f32>, tensor<4xi32>) -> tensor<?x32x8x8xf32>
    %select = stablehlo.select %le, %select.dynamic_broadcast_in_dim, %x0 : (tensor<?x32x8x8xi1>, tensor<?x32x8x8xf32>, tensor<?x32x8x8xf32>) -> tensor<?x32x8x8xf32>
    return %select : tensor<?x32x8x8xf32>
  }
  func.func private @max_pool(%x0: tensor<?x32x8x8xf32>) -> tensor<?x32x4x4xf32> {
    %c0xFF800000 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %reduce_window = "stablehlo.reduce_window"(%x0, %c0xFF800000) <{padding = dense<[[0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %reduce_window.maximum = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %reduce_window.maximum : tensor<f32>
    }) : (tensor<?x32x8x8xf32>, tensor<f32>) -> tensor<?x32x4x4xf32>
    return %reduce_window : tensor<?x32x4x4xf32>
  }
  func.func private @batch_norm_3(%x0: tensor<?x64x4x4xf32>, %x1: tensor<64xf32>, %x2: tensor<64xf32>, %x3: tensor<64xf32>, %x4: tensor<64xf32>) -> tensor<?x64x4x4xf32> {
    %c1.0e-05 = stablehlo.constant dense<1.0e-05> : tensor<64xf32>
    %table = stablehlo.constant dense<64> : tensor<1xi32>
    %table_2 = stablehlo.constant dense<4> : tensor<1xi32>
    %add = stablehlo.add %x4, %c1.0e-05 : tensor<64xf32>
    %rsqrt = stablehlo.rsqrt %add : tensor<64xf32>
    %mul = stablehlo.multiply %rsqrt, %x1 : tensor<64xf32>
    %neg = stablehlo.negate %x3 : tensor<64xf32>
    %reshape = stablehlo.reshape %neg : (tensor<64xf32>) -> tensor<64x1x1xf32>
    %add.get_dimension_size = stablehlo.get_dimension_size %x0, dim = 0 : (tensor<?x64x4x4xf32>) -> tensor<i32>
    %add.reshape = stablehlo.reshape %add.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %add.concatenate = stablehlo.concatenate %add.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %add.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %reshape, %add.concatenate, dims = [1, 2, 3] {known_expanding_dimensions = array<i64: 1, 2>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<64x1x1xf32>, tensor<4xi32>) -> tensor<?x64x4x4xf32>
    %add_2 = stablehlo.add %x0, %add.dynamic_broadcast_in_dim : tensor<?x64x4x4xf32>
    %reshape_2 = stablehlo.reshape %mul : (tensor<64xf32>) -> tensor<64x1x1xf32>
    %mul.reshape = stablehlo.reshape %add.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %mul.concatenate = stablehlo.concatenate %mul.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %mul.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %reshape_2, %mul.concatenate, dims = [1, 2, 3] {known_expanding_dimensions = array<i64: 1, 2>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<64x1x1xf32>, tensor<4xi32>) -> tensor<?x64x4x4xf32>
    %mul_2 = stablehlo.multiply %add_2, %mul.dynamic_broadcast_in_dim : tensor<?x64x4x4xf32>
    %reshape_3 = stablehlo.reshape %x2 : (tensor<64xf32>) -> tensor<64x1x1xf32>
    %add.reshape_2 = stablehlo.reshape %add.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %add.concatenate_2 = stablehlo.concatenate %add.reshape_2, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %add.dynamic_broadcast_in_dim_2 = stablehlo.dynamic_broadcast_in_dim %reshape_3, %add.concatenate_2, dims = [1, 2, 3] {known_expanding_dimensions = array<i64: 1, 2>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<64x1x1xf32>, tensor<4xi32>) -> tensor<?x64x4x4xf32>
    %add_3 = stablehlo.add %mul_2, %add.dynamic_broadcast_in_dim_2 : tensor<?x64x4x4xf32>
    return %add_3 : tensor<?x64x4x4xf32>
  }
  func.func private @relu_3(%x0: tensor<?x64x4x4xf32>) -> tensor<?x64x4x4xf32> {
    %c0 = stablehlo.constant dense<0.0> : tensor<f32>
    %table = stablehlo.constant dense<64> : tensor<1xi32>
    %table_2 = stablehlo.constant dense<4> : tensor<1xi32>
    %le.get_dimension_size = stablehlo.get_dimension_size %x0, dim = 0 : (tensor<?x64x4x4xf32>) -> tensor<i32>
    %le.reshape = stablehlo.reshape %le.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %le.concatenate = stablehlo.concatenate %le.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %le.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %c0, %le.concatenate, dims = [] {known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64>} : (tensor<f32>, tensor<4xi32>) -> tensor<?x64x4x4xf32>
    %le = stablehlo.compare LE, %x0, %le.dynamic_broadcast_in_dim, FLOAT : (tensor<?x64x4x4xf32>, tensor<?x64x4x4xf32>) -> tensor<?x64x4x4xi1>
    %select.reshape = stablehlo.reshape %le.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %select.concatenate = stablehlo.concatenate %select.reshape, %table, %table_2, %table_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %select.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %c0, %select.concatenate, dims = [] {known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64>} : (tensor<f32>, tensor<4xi32>) -> tensor<?x64x4x4xf32>
    %select = stablehlo.select %le, %select.dynamic_broadcast_in_dim, %x0 : (tensor<?x64x4x4xi1>, tensor<?x64x4x4xf32>, tensor<?x64x4x4xf32>) -> tensor<?x64x4x4xf32>
    return %select : tensor<?x64x4x4xf32>
  }
  func.func private @max_pool_2(%x0: tensor<?x64x4x4xf32>) -> tensor<?x64x2x2xf32> {
    %c0xFF800000 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %reduce_window = "stablehlo.reduce_window"(%x0, %c0xFF800000) <{padding = dense<[[0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %reduce_window.maximum = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %reduce_window.maximum : tensor<f32>
    }) : (tensor<?x64x4x4xf32>, tensor<f32>) -> tensor<?x64x2x2xf32>
    return %reduce_window : tensor<?x64x2x2xf32>
  }
  func.func private @linear(%x0: tensor<?x256xf32>, %x1: tensor<10x256xf32>, %x2: tensor<10xf32>) -> tensor<?x10xf32> {
    %table = stablehlo.constant dense<10> : tensor<1xi32>
    %matmul = stablehlo.dot_general %x0, %x1, contracting_dims = [1] x [1] : (tensor<?x256xf32>, tensor<10x256xf32>) -> tensor<?x10xf32>
    %add.get_dimension_size = stablehlo.get_dimension_size %x0, dim = 0 : (tensor<?x256xf32>) -> tensor<i32>
    %add.reshape = stablehlo.reshape %add.get_dimension_size : (tensor<i32>) -> tensor<1xi32>
    %add.concatenate = stablehlo.concatenate %add.reshape, %table, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %add.dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %x2, %add.concatenate, dims = [1] {known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<10xf32>, tensor<2xi32>) -> tensor<?x10xf32>
    %add = stablehlo.add %matmul, %add.dynamic_broadcast_in_dim : tensor<?x10xf32>
    return %add : tensor<?x10xf32>
  }
}
#loc1 = loc("forward"("samples/digits.py":33:0))
#loc2 = loc("forward"("samples/digits.py":49:0))
#loc3 = loc("forward"("samples/digits.py":50:0))
#loc4 = loc("forward"("samples/digits.py":51:0))
#loc5 = loc("forward"("samples/digits.py":52:0))
