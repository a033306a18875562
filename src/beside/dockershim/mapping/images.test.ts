import assert from "node:assert/strict";
import { test } from "node:test";
import { authHeader, imageMessage, isNamed, pullFailure, pullReference } from "./images.ts";

for (const { name, repository, tag } of [
  { name: "busybox", repository: "busybox", tag: "latest" },
  { name: "host:5000/a/b", repository: "host:5000/a/b", tag: "latest" },
  { name: "host:5000/a/b:1", repository: "host:5000/a/b", tag: "1" },
  { name: "a/b@sha256:12", repository: "a/b", tag: "sha256:12" },
  { name: "a/b:1@sha256:12", repository: "a/b", tag: "sha256:12" },
]) {
  test(`pulling ${name}`, () => assert.deepEqual(pullReference(name), { repository, tag }));
}

const none = { username: "", password: "", auth: "", serverAddress: "", identityToken: "", registryToken: "" };

test("logins are sent in full, also those that come as one word", () => {
  const sent = (auth: Parameters<typeof authHeader>[0]) =>
    JSON.parse(Buffer.from(authHeader(auth), "base64url").toString());
  assert.deepEqual(sent(undefined), {});
  assert.equal(authHeader({ ...none, username: "joe" }).length % 4, 0);
  assert.deepEqual(sent({ ...none, auth: Buffer.from("joe:p:w").toString("base64") }), {
    username: "joe",
    password: "p:w",
  });
  assert.deepEqual(sent({ ...none, identityToken: "t", serverAddress: "s" }), {
    identitytoken: "t",
    serveraddress: "s",
  });
});

test("a login: zeros at its end are left out, many inside it are taken as they are, and soon", () => {
  const sent = (login: string) =>
    JSON.parse(
      Buffer.from(authHeader({ ...none, auth: Buffer.from(login).toString("base64") }), "base64url").toString(),
    );
  assert.deepEqual(sent("joe:secret\0\0"), { username: "joe", password: "secret" });
  const odd = `${"\0".repeat(500_000)}x`;
  assert.equal(sent(`joe:${odd}`).password, odd);
});

test("a registry that is down is said to be; a line without a failure is none", () => {
  assert.equal(pullFailure({ error: "", errorDetail: { code: 0, message: "" } }), undefined);
  assert.equal(pullFailure({ error: "e", errorDetail: { code: 503, message: "later" } }), "RegistryUnavailable: later");
  assert.equal(pullFailure({ error: "e", errorDetail: { code: 0, message: "" } }), "e");
});

for (const { user, want } of [
  { user: "", want: [undefined, ""] },
  { user: "1000:5", want: [1000n, ""] },
  { user: "joe", want: [undefined, "joe"] },
]) {
  test(`an image of user "${user}"`, () => {
    const image = imageMessage({ id: "i", tags: [], digests: [], size: 3, user, labels: {} }, false);
    assert.deepEqual([image.uid?.value, image.username], want);
  });
}

test("an image is known by every name that leads to it", () => {
  const digest = `sha256:${"1".repeat(64)}`;
  const image = {
    ...{ id: "sha256:2", tags: ["pause:3", "own/tool:latest", "r.example:5000/x:1"], digests: [`pause@${digest}`] },
    ...{ size: 1, user: "", labels: {} },
  };
  for (const { name, want } of [
    { name: "pause:3", want: true },
    { name: "docker.io/library/pause:3", want: true },
    { name: "docker.io/own/tool", want: true },
    { name: `pause:3@${digest}`, want: true },
    { name: "r.example:5000/x:1", want: true },
    { name: "sha256:2", want: true },
    { name: "pause", want: false },
    { name: "r.example:5000/x", want: false },
  ]) {
    assert.equal(isNamed(image, name), want, name);
  }
});
