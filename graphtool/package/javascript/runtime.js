// Runs the functions of a compiled model over WebAssembly, in Node and in browsers.
import { imports } from "./system.js";
import { canShare, crew, sharedMemory } from "./threads.js";

const NODE = typeof process !== "undefined" && !!process.versions?.node;
const ALIGN = 64;
const ROOM = 64; // the most axes of an array
const RETRIES = 3; // of a connection that broke

const isHere = (file) => NODE && new URL(file, import.meta.url).protocol === "file:";

/** The bytes of a file that lies beside this module. */
async function bytes(file) {
  const url = new URL(file, import.meta.url);
  if (isHere(file)) return (await import("node:fs/promises")).readFile(url);
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** Reads `size` bytes of a file from `offset` on into `into()`, as they come. If the connection
 * breaks, the rest is asked for. */
async function stream(file, offset, size, into) {
  const url = new URL(file, import.meta.url);
  for (let done = 0, tries = 0; done < size; tries++) {
    const first = offset + done, answer = await fetch(url, { headers: { Range: `bytes=${first}-` } });
    if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
    let skipped = answer.status === 206 ? 0 : first; // what a server without ranges sends again
    const reader = answer.body.getReader();
    try {
      for (let part; !(part = await reader.read()).done;) {
        const rest = part.value.subarray(Math.min(skipped, part.value.length));
        skipped -= part.value.length - rest.length;
        const data = rest.subarray(0, size - done);
        into().set(data, done);
        done += data.length;
      }
      if (done < size) throw new Error(`${url} is cut short`);
    } catch (error) {
      if (tries === RETRIES) throw error;
    }
  }
}

/** Whether the engine has relaxed vectors: it takes a module with a fused multiply-add. */
const fuses = () => WebAssembly.validate(new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 8, 1, 96, 3, 123, 123, 123, 1, 123, 3, 2, 1, 0,
  10, 13, 1, 11, 0, 32, 0, 32, 1, 32, 2, 253, 133, 2, 11]));

/** The module that `about` describes, with its helpers where it has threads: as many as are asked
 * for, if workers can share memory here. */
async function instantiated(about, files, threads, relaxed) {
  const shares = about.threads && threads > 1 && canShare();
  const file = shares ? about.threads.wasm
    : about.relaxed && relaxed && fuses() ? about.relaxed : about.wasm;
  const module = await WebAssembly.compile(files[file] ?? await bytes(file));
  const team = shares ? await crew(module, sharedMemory(about.threads.pages), threads - 1) : null;
  const instance = await WebAssembly.instantiate(module, imports(
    () => instance.exports, team?.memory, team?.begin(() => instance.exports)));
  instance.exports._initialize?.();
  return new Memory(instance.exports, team ? threads : 1, team?.close);
}

/** Loads the model that `about` describes. `files` may give the bytes of its files by name;
 * `threads` is how many a run may use, `relaxed` whether results may depend on the engine. */
export async function open(about, files = {}, { threads = 1, relaxed = true } = {}) {
  const memory = await instantiated(about, files, threads, relaxed);
  if (about.weights) {
    const { file, offset, size } = about.weights;
    const at = memory.room("weights", size);
    const into = () => new Uint8Array(memory.buffer, at, size);
    if (files[file] || isHere(file)) {
      into().set((files[file] ?? await bytes(file)).subarray(offset, offset + size));
    } else {
      await stream(file, offset, size, into);
    }
  }
  return about.state ? new Trainer(about, memory) : new Model(about, memory);
}

/** The memory of a module: blocks with names, which later runs use again. */
class Memory {
  #blocks = new Map();

  constructor(exports, threads, close) {
    this.c = exports;
    this.threads = threads;
    this.close = close;
  }

  get buffer() {
    return this.c.memory.buffer;
  }

  /** Where the block lies; 0 if there is none. */
  at(key) {
    return this.#blocks.get(key)?.at ?? 0;
  }

  /** The block, of at least `size` bytes; a smaller one of this name is freed. */
  room(key, size) {
    const known = this.#blocks.get(key);
    if (known && known.size >= size) return known.at;
    if (known) this.c.free(known.at);
    const at = this.c.aligned_alloc(ALIGN, Math.ceil((size + 1) / ALIGN) * ALIGN);
    if (!at) throw new Error("no memory");
    this.#blocks.set(key, { at, size });
    return at;
  }

  put(key, data) {
    const at = this.room(key, data.length);
    new Uint8Array(this.buffer).set(data, at);
  }

  /** The text of C at an address. */
  text(at) {
    const all = new Uint8Array(this.buffer);
    return new TextDecoder().decode(all.slice(at, all.indexOf(0, at)));
  }
}

/** A loaded model: one method for each function. */
class Model {
  #end;

  constructor(about, memory) {
    for (const [name, row] of Object.entries(about.functions)) {
      const call = new Call(row, name, memory);
      this[name] = (inputs = {}, sizes = {}) => call.run(inputs, sizes);
    }
    this.#end = memory.close ?? (() => {});
  }

  /** Ends the helpers; no run may follow. */
  close() {
    this.#end();
  }
}

/** A model that trains: its parameters and its optimizer are one block of bytes. */
class Trainer extends Model {
  #memory; #size; #start;

  constructor(about, memory) {
    memory.room("state", about.state);
    super(about, memory);
    this.#memory = memory;
    this.#size = about.state;
    this.#start = new Call(about.start, "init", memory);
    this.reset();
  }

  /** Begin again: the state in which the model was compiled. */
  reset() {
    this.#start.run({}, {});
  }

  /** A copy of the state, which may be stored and given back. */
  get state() {
    const at = this.#memory.at("state");
    return new Uint8Array(this.#memory.buffer).slice(at, at + this.#size);
  }

  set state(data) {
    if (data.length !== this.#size) throw new RangeError(`a state has ${this.#size} bytes`);
    this.#memory.put("state", data);
  }
}

const inState = (port) => typeof port === "number";

/** One function: `row` has its name in C, its ports and its open sizes. */
class Call {
  #row; #key; #memory;

  constructor(row, key, memory) {
    this.#row = row;
    this.#key = key;
    this.#memory = memory;
  }

  #of(name) {
    return this.#memory.c[`${this.#row.symbol}_${name}`];
  }

  #message(status) {
    return this.#memory.text(this.#of("status_text")(status));
  }

  /** The address of the sizes, with room for those that the run computes. */
  #dims(sizes) {
    const { dims, computed } = this.#row;
    const at = this.#memory.room("dims", 8 * (dims.length + computed + 1));
    const view = new BigInt64Array(this.#memory.buffer, at, dims.length + computed);
    dims.forEach((name, i) => {
      if (!Number.isSafeInteger(sizes[name])) throw new TypeError(`${name} is no size`);
      view[i] = BigInt(sizes[name]);
    });
    return at;
  }

  /** The address of each port, inputs first; those of a state lie in its block. */
  #places(dims) {
    const { inputs, outputs } = this.#row;
    return [...inputs, ...outputs].map((port, i) => {
      if (inState(port)) return { size: 0, at: this.#memory.at("state") + port };
      const size = this.#of("shape")(i, dims, 0);
      return { size, at: this.#memory.room(`${this.#key}.${i}`, size) };
    });
  }

  #fill({ name, type, rank }, { at, size }, given) {
    const single = typeof given === "number" || typeof given === "bigint";
    const data = rank === 0 && single ? type.of(given) : given;
    if (!(data instanceof type)) throw new TypeError(`${name} is no ${type.name}`);
    if (data.byteLength !== size) {
      throw new RangeError(`${name} has ${data.length} elements, expected ` +
        size / type.BYTES_PER_ELEMENT);
    }
    new type(this.#memory.buffer, at, data.length).set(data);
  }

  #result({ type, rank, parts }, port, { at }, dims, shape) {
    this.#of("shape")(port, dims, shape);
    const dense = Array.from(new BigInt64Array(this.#memory.buffer, shape, rank), Number);
    const length = dense.reduce((a, b) => a * b, parts);
    return { data: new type(this.#memory.buffer, at, length).slice(), shape: dense };
  }

  /** Runs the function on dense arrays. */
  run(given, sizes) {
    const memory = this.#memory, { inputs, outputs } = this.#row;
    const dims = this.#dims(sizes);
    const arenaBytes = this.#of("arena_bytes")(dims);
    if (!arenaBytes) throw new RangeError(this.#message(-1));
    const arena = memory.room("arena", arenaBytes), places = this.#places(dims);
    const pointers = memory.room("pointers", 4 * (places.length + 2));
    const shape = memory.room("shape", 8 * ROOM);
    inputs.forEach((port, i) => {
      if (!inState(port)) this.#fill(port, places[i], given[port.name]);
    });
    outputs.forEach(({ from }, i) => {
      if (!(from >= 0)) return;
      const source = places[from];
      new Uint8Array(memory.buffer).copyWithin(
        places[inputs.length + i].at, source.at, source.at + source.size);
    });
    new Uint32Array(memory.buffer, pointers, places.length).set(places.map(({ at }) => at));
    const status = this.#of("run")(memory.at("weights"), arena, dims, pointers,
      pointers + 4 * inputs.length, memory.threads);
    if (status) throw new Error(this.#message(status));
    return Object.fromEntries(outputs.flatMap((port, i) => inState(port) ? [] : [[port.name,
      this.#result(port, inputs.length + i, places[inputs.length + i], dims, shape)]]));
  }
}
