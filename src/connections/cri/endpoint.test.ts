import assert from "node:assert/strict";
import { test } from "node:test";
import { EndpointError, parseEndpoint } from "./endpoint.ts";

for (const [endpoint, socketPath] of [
  ["unix:///run/containerd/containerd.sock", "/run/containerd/containerd.sock"],
  ["unix:/run/x.sock", "/run/x.sock"],
  ["UNIX:///run/x.sock", "/run/x.sock"],
  ["unix:///run/with space%20.sock", "/run/with space%20.sock"],
] as const) {
  test(`endpoint ${endpoint} is the socket ${socketPath}`, () => {
    assert.deepEqual(parseEndpoint(endpoint), { socketPath, deprecated: undefined });
  });
}

test("a bare path is accepted, with a word about it", () => {
  const { socketPath, deprecated } = parseEndpoint("/run/crio/crio.sock");
  assert.equal(socketPath, "/run/crio/crio.sock");
  assert.match(deprecated ?? "", /deprecated.*unix:\/\/\/run\/crio\/crio\.sock/);
});

for (const [endpoint, problem] of [
  ["tcp://127.0.0.1:3735", /only support unix socket endpoint/],
  ["npipe:////./pipe/containerd", /protocol "npipe" not supported/],
  ["http://x", /protocol "http" not supported/],
  ["", /is empty/],
  ["run/containerd.sock", /not absolute/],
  ["unix://run/containerd.sock", /not absolute/],
] as const) {
  test(`endpoint "${endpoint}" is refused`, () => {
    assert.throws(
      () => parseEndpoint(endpoint),
      (error) => error instanceof EndpointError && error.endpoint === endpoint && problem.test(error.message),
    );
  });
}
