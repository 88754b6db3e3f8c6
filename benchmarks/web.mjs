// Times one model in Node: what its arguments, a JSON object, name. Prints a JSON object.
// {mode: "race" | "first", contestants: {name: path}, npm, inputs: [{name, type, file, shape}],
//  threads, warm, rounds, seconds}
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";

const job = JSON.parse(process.argv[2]);
const start = performance.now();

const arrays = { f32: Float32Array, i64: BigInt64Array };
const inputs = await Promise.all(job.inputs.map(async (row) => {
  const bytes = await readFile(row.file);
  return { ...row, data: new arrays[row.type](bytes.buffer.slice(
    bytes.byteOffset, bytes.byteOffset + bytes.length)) };
}));

const floats = async (file) => {
  const bytes = await readFile(file);
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
};

/** What a step of TensorFlow.js computes of its inputs; web_tfjs.py writes the steps. */
const steps = (tf) => ({
  conv: ([x], { strides, pad, activation }, [filter, bias]) =>
    tf.fused.conv2d({ x, filter, strides, pad, bias, activation }),
  depthwise: ([x], { strides, pad, activation }, [filter, bias]) =>
    tf.fused.depthwiseConv2d({ x, filter, strides, pad, bias, activation }),
  dense: ([a], { activation }, [b, bias]) => tf.fused.matMul({ a, b, bias, activation }),
  add: ([a, b]) => tf.add(a, b),
  mul: ([a, b]) => tf.mul(a, b),
  relu: ([x]) => tf.relu(x),
  softmax: ([x]) => tf.softmax(x),
  hardSwish: ([x]) => tf.mul(x, tf.mul(tf.relu6(tf.add(x, 3)), 1 / 6)),
  hardSigmoid: ([x]) => tf.mul(tf.relu6(tf.add(x, 3)), 1 / 6),
  flat: ([x]) => tf.reshape(x, [x.shape[0], -1]),
  mean: ([x], { keep }) => tf.mean(x, [1, 2], keep),
});

/** A function that runs the model once, and gives the numbers of its first output. */
const makers = {
  async graphtool(path) {
    const { load } = await import(pathToFileURL(`${path}/index.js`));
    const model = await load({}, { threads: job.threads });
    const given = Object.fromEntries(inputs.map(({ name, data }) => [name, data]));
    return () => Object.values(model.run(given, {}))[0].data;
  },
  async onnxruntime(path) {
    // that for browsers fetches its workers, which Node cannot do
    const file = job.threads > 1 ? "ort.node.min.mjs" : "ort.wasm.min.mjs";
    const ort = await import(pathToFileURL(`${job.npm}/onnxruntime-web/dist/${file}`));
    ort.env.wasm.numThreads = job.threads;
    ort.env.logLevel = "error";
    const session = await ort.InferenceSession.create(await readFile(path), {
      executionProviders: ["wasm"], graphOptimizationLevel: "all" });
    const types = { f32: "float32", i64: "int64" };
    const feeds = Object.fromEntries(inputs.map(({ data, type, shape }, i) => [
      session.inputNames[i], new ort.Tensor(types[type], data, shape)]));
    return async () => (await session.run(feeds))[session.outputNames[0]].data;
  },
  async tfjs(path) {
    const load = createRequire(`${job.npm}/x.js`), tf = load("@tensorflow/tfjs-core");
    load("@tensorflow/tfjs-backend-wasm").setThreadsCount(job.threads);
    await tf.setBackend("wasm");
    await tf.ready();
    const model = JSON.parse(await readFile(path)), folder = dirname(path), known = steps(tf);
    const all = await floats(`${folder}/weights.bin`);
    const weights = new Map(model.steps.map((step) => [step, step.weights?.map(({ at, shape }) =>
      tf.tensor(all.slice(at, at + shape.reduce((a, b) => a * b, 1)), shape))]));
    const given = await Promise.all(model.inputs.map(async ({ name, file, shape }) =>
      [name, await floats(`${folder}/${file}`), shape]));
    return () => tf.tidy(() => {
      const values = Object.fromEntries(given.map(([name, data, shape]) => [
        name, tf.tensor(data, shape)]));
      for (const step of model.steps) {
        values[step.output] = known[step.op](
          step.inputs.map((name) => values[name]), step, weights.get(step));
      }
      return values[model.output].dataSync();
    });
  },
};
const kind = (name) => name.split(" ")[0];

if (job.mode === "first") {
  const [[name, path]] = Object.entries(job.contestants);
  const before = performance.now();
  await (await makers[kind(name)](path))();
  console.log(JSON.stringify({ [name]: performance.now() - before }));
  process.exit(0);
}

const runs = {}, values = {}, times = {};
for (const [name, path] of Object.entries(job.contestants)) {
  runs[name] = await makers[kind(name)](path);
  values[name] = Array.from(await runs[name](), Number);
  // V8 compiles a module twice, and the second time in the background while it runs
  const end = performance.now() + 1000 * job.warm;
  do await runs[name](); while (performance.now() < end);
  times[name] = [];
}
for (let round = 0; round < job.rounds; round++) {
  for (const [name, run] of Object.entries(runs)) {
    const all = [], end = performance.now() + 1000 * job.seconds;
    do {
      const before = performance.now();
      await run();
      all.push(performance.now() - before);
    } while (performance.now() < end);
    all.sort((a, b) => a - b);
    times[name].push(all[Math.floor(all.length / 4)]);
  }
}
const first = Object.values(values)[0];
const largest = (values, of) => values.reduce((most, v, i) => Math.max(most, of(v, i)), 0);
const scale = largest(first, Math.abs);
const apart = Object.fromEntries(Object.entries(values).map(([name, other]) => [
  name, largest(other, (v, i) => Math.abs(v - first[i])) / scale]));
console.log(JSON.stringify({ times, apart, start }));
process.exit(0);
