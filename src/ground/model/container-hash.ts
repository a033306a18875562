import { goJson, oncePer } from "../base/index.ts";
import type { Container } from "./kube/gen/types.ts";

const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;
const zero = "0".charCodeAt(0);
const space = " ".charCodeAt(0);

/**
 * The hash by which a running container is recognised as made from this definition, as lower-case hex. It must equal
 * what a Go kubelet writes, so that either agent adopts the other's containers without restarting them; hence the odd
 * text it runs over. Asked for at every look at the pod, and the name of an image may be a megabyte long.
 */
export const containerHash = oncePer((container: Pick<Container, "name" | "image">): string => {
  const json = goJson({ image: container.image ?? "", name: container.name });
  return fnv1a32(`([]uint8)[${numbersOf(Buffer.from(json))}]`).toString(16);
});

/** Bytes as Go prints them within a list. There may be a megabyte of them, while everybody else waits. */
export function numbersOf(bytes: Uint8Array): string {
  const digits = Buffer.allocUnsafe(bytes.length * "255 ".length);
  let end = 0;
  for (const byte of bytes) {
    if (byte >= 100) digits[end++] = zero + Math.trunc(byte / 100);
    if (byte >= 10) digits[end++] = zero + (Math.trunc(byte / 10) % 10);
    digits[end++] = zero + (byte % 10);
    digits[end++] = space;
  }
  return digits.toString("latin1", 0, Math.max(0, end - 1));
}

/** 32-bit FNV-1a of an ASCII text. */
export function fnv1a32(text: string): number {
  let hash = fnvOffset;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), fnvPrime);
  }
  return hash >>> 0;
}
