import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { createGunzip } from "node:zlib";
import { ServedDashboard } from "../../../../test/support/dashboard.ts";
import { testPod } from "../../../../test/support/pods.ts";
import { until } from "../../../../test/support/until.ts";

const packed = { headers: { "Accept-Encoding": "gzip" } };

/** What has come so far, unpacked and as it came. */
function unpacked(response: IncomingMessage) {
  const all = { text: "", bytes: 0 };
  response.on("data", (piece: Buffer) => {
    all.bytes += piece.length;
  });
  const unpacker = createGunzip().setEncoding("utf8");
  response.on("error", () => {}).pipe(unpacker);
  unpacker.on("data", (piece: string) => {
    all.text += piece;
  });
  return all;
}

test("who can unpack is told everything in a tenth of the bytes, and each change at once", async () => {
  await using served = await ServedDashboard.start();
  const { node } = served;
  await served.logIn();
  for (let count = 0; count < 200; count++) node.put(testPod({}, { name: `web-${count}`, uid: `uid-${count}` }));
  const viewer = await served.open("api/live", packed);
  assert.equal(viewer.headers["content-encoding"], "gzip");
  const all = unpacked(viewer);
  await until("all pods are told", () => all.text.includes('["pod/uid-199",'));
  assert.match(all.text, /^event: begin\n/);
  assert.ok(all.bytes * 10 < all.text.length, `${all.bytes} of ${all.text.length} bytes`);
  node.put(testPod({}, { name: "late", uid: "uid-late" }));
  await node.clock.advance(50);
  await until("the change is told, though nothing follows it", () => all.text.includes('["pod/uid-late",'));
  viewer.destroy();
  await until("nobody looks", () => node.listeners.size === 0);
});

test("who can't is told in plain text", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  for (const accepted of ["identity", "gzip;q=0", "br"]) {
    const viewer = await served.open("api/live", { headers: { "Accept-Encoding": accepted } });
    assert.equal(viewer.headers["content-encoding"], undefined, accepted);
    viewer.resume();
    viewer.destroy();
  }
});

test("who takes packed words and does not read them is told the last truth when it reads again", async () => {
  await using served = await ServedDashboard.start();
  const { node } = served;
  await served.logIn();
  // Nothing of it repeats, so that packing saves little.
  const noise = (): string => Array.from({ length: 90 }, () => Math.random().toString(36).slice(2)).join("");
  const change = (round: number): void => {
    for (let count = 0; count < 300; count++) {
      node.put(testPod({}, { name: `${noise()}-${count}-${round}`, uid: `uid-${count}` }));
    }
  };
  change(0);
  const slow = await served.open("api/live", packed);
  slow.pause();
  for (let round = 1; round <= 40; round++) {
    change(round);
    await node.clock.advance(50);
  }
  const all = unpacked(slow);
  await until("the last truth is told", () => all.text.includes("-299-40"));
  const told = new Set([...all.text.matchAll(/-299-(\d+)/g)].map(([, round]) => round));
  assert.ok(told.size < 30, `what was true in between is left out, and ${told.size} of 41 were told`);
  slow.destroy();
});
