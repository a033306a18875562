import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { isRecentVersion, unzip } from "./kubectl.mjs";

for (const { text, recent } of [
  { text: "Client Version: v1.34.5\nKustomize Version: v5.7.1\n", recent: true },
  { text: "Client Version: v1.27.0\n", recent: true },
  { text: "Client Version: v1.32.4-dispatcher\n", recent: true },
  { text: "Client Version: v1.26.9\n", recent: false },
  { text: 'Client Version: version.Info{Major:"1", Minor:"20+", GitVersion:"v1.20.2"}\n', recent: false },
  { text: "", recent: false },
]) {
  test(`kubectl that says ${JSON.stringify(text)} is ${recent ? "" : "not "}recent enough`, () =>
    assert.equal(isRecentVersion(text), recent));
}

/** A zip archive as programs write it: entries, then the directory that tells where they are. */
function zipOf(files) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const { name, content, method } of files) {
    const bytes = method === 8 ? deflateRawSync(content) : content;
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(method, 4);
    common.writeUInt32LE(bytes.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const entry = Buffer.concat([Buffer.from("PK\x03\x04"), common, Buffer.from(name), bytes]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), common, place, Buffer.from(name)]));
    parts.push(entry);
    offset += entry.length;
  }
  const places = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(places.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, places, Buffer.from("PK\x05\x06"), end]);
}

test("a file comes out of a zip archive as it went in, packed or not", () => {
  const packed = Buffer.from("packed ".repeat(1000));
  const plain = Buffer.from("plain");
  const zip = zipOf([
    { name: "other", content: Buffer.from("x"), method: 8 },
    { name: "bin/packed", content: packed, method: 8 },
    { name: "bin/plain", content: plain, method: 0 },
  ]);
  assert.deepEqual(unzip(zip, "bin/packed"), packed);
  assert.deepEqual(Buffer.from(unzip(zip, "bin/plain")), plain);
  assert.throws(() => unzip(zip, "absent"), /there is no absent in the archive/);
});
