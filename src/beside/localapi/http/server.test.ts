import assert from "node:assert/strict";
import http2, { type Http2SecureServer } from "node:http2";
import { syncBuiltinESMExports } from "node:module";
import { mock, test } from "node:test";
import { ApiClient, accessOf } from "../../../../test/contract/api/client.ts";
import { startLocalApi } from "../start.ts";
import { requestUrl } from "./server.ts";

test("a connection that can't be accepted harms nobody but its client", async () => {
  const made = mock.method(http2, "createSecureServer");
  syncBuiltinESMExports();
  try {
    await using api = await startLocalApi();
    // As Node tells it.
    const server = made.mock.calls[0]?.result as Http2SecureServer;
    server.emit("error", Object.assign(new Error("accept EMFILE"), { code: "EMFILE", syscall: "accept" }));
    using client = new ApiClient(accessOf(await api.adminKubeconfig()));
    assert.equal((await client.get("/api/v1/nodes")).code, 200);
  } finally {
    made.mock.restore();
    syncBuiltinESMExports();
  }
});

for (const [target, path] of [
  ["/api/v1/pods?watch=1", "/api/v1/pods"],
  ["//eviction-.%25b%C3%A9/x", "//eviction-.%25b%C3%A9/x"],
  ["//user:word@host:70000/", "//user:word@host:70000/"],
  ["///", "///"],
  ["*", "/*"],
  ["", "/"],
] as const) {
  test(`${JSON.stringify(target)} is a path of this server`, () => {
    const url = requestUrl(target);
    assert.equal(url.host, "localhost");
    assert.equal(url.pathname, path);
  });
}
