import type { Container } from "./kube/gen/types.ts";

const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;

/**
 * The hash by which a running container is recognised as made from this definition, as lower-case hex. It must equal
 * what a Go kubelet writes, so that either agent adopts the other's containers without restarting them; hence the odd
 * text it runs over.
 */
export function containerHash(container: Pick<Container, "name" | "image">): string {
  const json = goJson({ image: container.image ?? "", name: container.name });
  return fnv1a32(`([]uint8)[${[...Buffer.from(json)].join(" ")}]`).toString(16);
}

/** JSON as Go writes it: the characters that matter to HTML and JavaScript are escaped. */
function goJson(value: Readonly<Record<string, string>>): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** 32-bit FNV-1a of an ASCII text. */
export function fnv1a32(text: string): number {
  let hash = fnvOffset;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), fnvPrime);
  }
  return hash >>> 0;
}
