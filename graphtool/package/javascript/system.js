// What a module asks of its host.
const NO_FILE = 8, NOT_SUPPORTED = 52; // errors of WASI
const NONE = () => 0;

/** What the C library asks of a system: the time; there are no variables and no files. */
function system(exports) {
  const view = () => new DataView(exports().memory.buffer);
  const known = {
    environ_sizes_get: (count, size) => {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return 0;
    },
    environ_get: () => 0,
    clock_time_get: (_clock, _precision, at) => {
      view().setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    fd_prestat_get: () => NO_FILE,
  };
  return new Proxy(known, { get: (_, name) => known[name] ?? (() => NOT_SUPPORTED) });
}

/** The imports of a module: with `memory` it shares that one, and `begin` gives it threads. */
export const imports = (exports, memory, begin = NONE) => ({
  wasi_snapshot_preview1: system(exports), env: { memory, gt_thread: begin },
});
