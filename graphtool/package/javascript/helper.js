// A worker of threads.js: it instantiates the module, then gives its thread to a function in it.
import { imports } from "./system.js";

const NODE = typeof process !== "undefined" && !!process.versions?.node;
const port = NODE ? (await import("node:worker_threads")).parentPort : self;
let c;

async function act(data) {
  if (data.module) {
    c = (await WebAssembly.instantiate(data.module, imports(() => c, data.memory))).exports;
    port.postMessage("ready");
  } else {
    c.__stack_pointer.value = data.stack;
    c.__indirect_function_table.get(data.help)(data.place);
  }
}

if (NODE) port.on("message", act);
else port.onmessage = ({ data }) => act(data);
port.postMessage("here");
