// The helpers of a model with threads: workers over one memory, which wait inside the module until
// a run calls them.
const NODE = typeof process !== "undefined" && !!process.versions?.node;
const STACK = 1 << 20; // bytes of each
const MOST_PAGES = (1 << 16) - 1; // what the module was linked for

/** Whether workers can share memory here: a page must be isolated by its headers. */
export const canShare = () => typeof SharedArrayBuffer !== "undefined" &&
  (NODE || globalThis.crossOriginIsolated === true);

/** The memory of a module that begins with so many pages. */
export const sharedMemory = (initial) =>
  new WebAssembly.Memory({ initial, maximum: MOST_PAGES, shared: true });

/** A worker that has the module in it. */
async function helper(module, memory) {
  const script = new URL("./helper.js", import.meta.url);
  const Kind = NODE ? (await import("node:worker_threads")).Worker : Worker;
  const worker = new Kind(script, { type: "module" });
  const said = () => new Promise((done, fail) => {
    if (NODE) worker.once("message", done).once("error", fail);
    else worker.onmessage = done, worker.onerror = () => fail(new Error(`${script} cannot start`));
  });
  await said();
  const ready = said();
  worker.postMessage({ module, memory });
  await ready;
  if (NODE) worker.removeAllListeners().unref(); // the process ends without waiting for it
  return worker;
}

/** So many helpers: `begin` is what the module calls to get one, 1 if there was one left. */
export async function crew(module, memory, count) {
  const workers = await Promise.all(Array.from({ length: count }, () => helper(module, memory)));
  const idle = [...workers];
  return {
    memory,
    begin: (exports) => (help, place) => {
      const stack = idle.length && exports().aligned_alloc(16, STACK);
      if (!stack) return 0;
      idle.pop().postMessage({ help, place, stack: stack + STACK });
      return 1;
    },
    close: () => workers.forEach((worker) => worker.terminate()),
  };
}
