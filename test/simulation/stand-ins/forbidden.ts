import { machine } from "../machine/machine.ts";

/** Stands for a function of the real world. Who calls it is no longer ruled by the seed, which fails the run. */
export function forbidden(module: string, name: string): (...args: unknown[]) => never {
  return () => {
    const what = `${name} of ${module} was called`;
    machine().escapes.push(what);
    throw new Error(`${what}, which the simulation does not have`);
  };
}
