import assert from "node:assert/strict";
import { test } from "node:test";
import type { IdentifiedPod } from "../../../ground/model/index.ts";
import { ContentError } from "./content.ts";
import { configMapContent, downwardContent, secretContent } from "./sources.ts";

const value = "x".repeat(200_000);
const pod = {
  metadata: { name: "web", namespace: "default", uid: "u", annotations: { long: value } },
  spec: { containers: [{ name: "main" }] },
} as unknown as IdentifiedPod;
const names = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `f${index}`);
const keyed = (count: number) => ({ items: names(count).map((path) => ({ key: "long", path })) });
const encoded = Buffer.from(value).toString("base64");

const sources = {
  configMap: (count: number) => configMapContent({ data: { long: value } }, keyed(count), 0o644),
  secret: (count: number) => secretContent({ data: { long: encoded } }, keyed(count), 0o644),
  downwardAPI: (count: number) => {
    const fieldRef = { fieldPath: "metadata.annotations['long']" };
    const items = names(count).map((path) => ({ path, fieldRef }));
    return downwardContent(pod, items, 0o644, { cpu: 0n, memory: 0n } as never);
  },
};

for (const [name, content] of Object.entries(sources)) {
  test(`${name}: one value under many names is refused before it fills the memory`, () => {
    assert.equal(content(50).size, 50);
    assert.throws(() => content(10_000), ContentError);
  });
}
