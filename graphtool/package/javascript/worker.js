// The model in a worker: the same methods, whose results are promises, and a page that stays quick.

/** Loads the model in a worker of its own; `files` and `options` as for the module itself. */
export async function load(files = {}, options = {}) {
  const worker = new Worker(new URL("./inside.js", import.meta.url), { type: "module" });
  const waiting = new Map();
  let count = 0;
  worker.onmessage = ({ data: { id, value, error } }) => {
    const { done, fail } = waiting.get(id);
    waiting.delete(id);
    if (error) fail(Object.assign(new Error(error.message), { name: error.name }));
    else done(value);
  };
  worker.onerror = ({ message }) => {
    for (const { fail } of waiting.values()) fail(new Error(message || "the worker cannot start"));
    waiting.clear();
  };
  const ask = (act, ...given) => new Promise((done, fail) => {
    waiting.set(++count, { done, fail });
    worker.postMessage({ id: count, act, given });
  });
  const { names, trains } = await ask("load", files, options);
  const model = { close: () => worker.terminate() };
  for (const name of names) model[name] = (...given) => ask("call", name, ...given);
  if (trains) {
    model.getState = () => ask("getState");
    model.setState = (data) => ask("setState", data);
  }
  return model;
}
