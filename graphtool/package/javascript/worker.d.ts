import type { Model as Direct, Options } from "./index.js";

type Later<T> = {
  [K in keyof T as T[K] extends Function ? K : never]:
    T[K] extends (...given: infer A) => infer R ? (...given: A) => Promise<R> : never;
};
type State = { getState(): Promise<Uint8Array>; setState(data: Uint8Array): Promise<void> };

/** The model in a worker; `close` ends it. */
export type Model = Later<Omit<Direct, "close">> & { close(): void } &
  (Direct extends { state: Uint8Array } ? State : {});

/** Loads the model in a worker of its own; `files` and `options` as for the module itself. */
export function load(files?: Record<string, Uint8Array>, options?: Options): Promise<Model>;
