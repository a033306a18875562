import assert from "node:assert/strict";
import { test } from "node:test";
import { layersOf } from "./image-content.ts";

const digest = `sha256:${"a".repeat(64)}`;
const text = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

for (const { what, manifest, layers } of [
  { what: "an image", manifest: text({ layers: [{ digest, size: 5 }] }), layers: [{ digest, bytes: 5 }] },
  { what: "an image without layers", manifest: text({ layers: [] }), layers: [] },
  { what: "an index", manifest: text({ manifests: [] }), layers: undefined },
  { what: "a digest that is none", manifest: text({ layers: [{ digest: "../x", size: 5 }] }), layers: undefined },
  { what: "a size that is none", manifest: text({ layers: [{ digest, size: "5" }] }), layers: undefined },
  { what: "a negative size", manifest: text({ layers: [{ digest, size: -5 }] }), layers: undefined },
  {
    what: "more layers than anybody has",
    manifest: text({ layers: Array(1001).fill({ digest, size: 1 }) }),
    layers: undefined,
  },
  { what: "layers of null", manifest: text({ layers: [null] }), layers: undefined },
  { what: "null", manifest: text(null), layers: undefined },
  { what: "rubbish", manifest: Buffer.from("{"), layers: undefined },
  { what: "too much to read", manifest: undefined, layers: undefined },
]) {
  test(`layers in ${what}`, () => assert.deepEqual(layersOf(manifest), layers));
}
