// The worker's side of worker.js.
import { load } from "./index.js";

let model;
const acts = {
  async load(files, options) {
    model = await load(files, options);
    const trains = "state" in model;
    return { names: [...Object.keys(model), ...(trains ? ["reset"] : [])], trains };
  },
  call: (name, ...given) => model[name](...given),
  getState: () => model.state,
  setState: (data) => { model.state = data; },
};

self.onmessage = async ({ data: { id, act, given } }) => {
  try {
    self.postMessage({ id, value: await acts[act](...given) });
  } catch ({ name, message }) {
    self.postMessage({ id, error: { name, message } });
  }
};
