import { goJson, oncePer } from "../base/index.ts";
import type { Container } from "./kube/gen/types.ts";

const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;

/**
 * The hash by which a running container is recognised as made from this definition, as lower-case hex. It must equal
 * what a Go kubelet writes, so that either agent adopts the other's containers without restarting them; hence the odd
 * text it runs over. Asked for at every look at the pod, and the name of an image may be a megabyte long.
 */
export const containerHash = oncePer((container: Pick<Container, "name" | "image">): string => {
  const json = goJson({ image: container.image ?? "", name: container.name });
  return fnv1a32(`([]uint8)[${[...Buffer.from(json)].join(" ")}]`).toString(16);
});

/** 32-bit FNV-1a of an ASCII text. */
export function fnv1a32(text: string): number {
  let hash = fnvOffset;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), fnvPrime);
  }
  return hash >>> 0;
}
