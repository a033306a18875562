import assert from "node:assert/strict";
import { test } from "node:test";
import { containerHash, fnv1a32 } from "./container-hash.ts";

test("the check value of a Go kubelet", () => {
  assert.equal(containerHash({ name: "test_container", image: "foo/image:v1" }), "8e45cbd0");
});

test("a plain FNV-1a check value from the algorithm's authors", () => {
  assert.equal(fnv1a32("foobar"), 0xbf9cf968);
});

test("the check value of Go's allocation checkpoint", () => {
  const data = `{"entries":{"pod1":{"ContainerResources":{"container1":{"requests":{"cpu":"1Ki","memory":"1Ki"}}}}}}`;
  assert.equal(fnv1a32(`(string)${data}`), 1178570812);
});

test("only name and image take part", () => {
  const plain = containerHash({ name: "c", image: "i" });
  const other: { name: string; image: string; command: string[] } = { name: "c", image: "i", command: ["x"] };
  assert.equal(containerHash(other), plain);
  assert.notEqual(containerHash({ name: "c", image: "j" }), plain);
  assert.notEqual(containerHash({ name: "d", image: "i" }), plain);
});

test("HTML characters are hashed in their escaped form", () => {
  const bytes = [...Buffer.from('{"image":"a\\u003cb\\u003e\\u0026","name":"n"}')].join(" ");
  assert.equal(containerHash({ name: "n", image: "a<b>&" }), fnv1a32(`([]uint8)[${bytes}]`).toString(16));
});

test("a container without an image hashes the empty string", () => {
  assert.equal(containerHash({ name: "n" }), containerHash({ name: "n", image: "" }));
});

test("no padding: the hex text is as short as the number", () => {
  for (let index = 0; index < 5000; index++) {
    const hash = containerHash({ name: "n", image: `image:${index}` });
    assert.match(hash, /^[1-9a-f][0-9a-f]{0,7}$/);
  }
});
