import assert from "node:assert/strict";
import { test } from "node:test";
import { DockerConfigError, parseDockerCfg, parseDockerConfigJson } from "./docker-config.ts";
import { Keyring } from "./keyring.ts";
import { matchesRegistry, parseRegistryPattern, registryKey } from "./registry-pattern.ts";

function matches(pattern: string, image: string): boolean {
  const [parsedPattern, parsedImage] = [parseRegistryPattern(pattern), parseRegistryPattern(image)];
  assert.ok(parsedPattern !== undefined && parsedImage !== undefined);
  return matchesRegistry(parsedPattern, parsedImage);
}

for (const [pattern, image, expected] of [
  ["gcr.io", "gcr.io/team/app", true],
  ["gcr.io/team", "gcr.io/team/app", true],
  ["gcr.io/foo", "gcr.io/foobar", true],
  ["gcr.io/team/other", "gcr.io/team/app", false],
  ["*.gcr.io", "eu.gcr.io/app", true],
  ["*.gcr.io", "gcr.io/app", false],
  ["*.gcr.io", "a.b.gcr.io/app", false],
  ["*.*.registry.io", "a.b.registry.io/app", true],
  ["k8s.*", "k8s.io/app", true],
  ["k8s.*.io", "k8s.gcr.io/app", true],
  ["app-*.io", "app-eu.io/x", true],
  ["app-*.io", "app.io/x", false],
  ["a*b*c.io", "aXbYc.io/x", true],
  ["a*b*c.io", "acb.io/x", false],
  ["ab*ba.io", "aba.io/x", false],
  ["*.azurecr.io:8080", "x.azurecr.io/app", false],
  ["x.azurecr.io", "x.azurecr.io:8080/app", false],
  ["registry.io:8080/path", "registry.io:8080/path/app", true],
  ["registry.io:8080/path", "registry.io:8081/path/app", false],
  ["registry.io/*", "registry.io/app", false],
  ["[::1]:5000", "[::1]:5000/app", true],
  ["https://gcr.io", "gcr.io/app", true],
  ["docker.io", "docker.io/library/nginx", true],
] as const) {
  test(`pattern ${pattern} ${expected ? "fits" : "does not fit"} ${image}`, () =>
    assert.equal(matches(pattern, image), expected));
}

for (const [location, key] of [
  ["https://index.docker.io/v1/", "index.docker.io"],
  ["http://reg.io/v2/", "reg.io"],
  ["reg.io/v2/team", "reg.io/team"],
  ["reg.io/v3/team", "reg.io/v3/team"],
  ["reg.io/", "reg.io"],
  ["reg.io:5000/team", "reg.io:5000/team"],
  ["reg.io:port/team", undefined],
  ["with space.io", undefined],
] as const) {
  test(`key of ${location}`, () => assert.equal(registryKey(location), key));
}

test("patterns with an impossible host or port are refused", () => {
  for (const text of ["reg.io:port", "a b", "reg[.io", "user@reg.io"]) {
    assert.equal(parseRegistryPattern(text), undefined, text);
  }
});

function keyringOf(...locations: readonly string[]): Keyring {
  const keyring = new Keyring();
  keyring.add(
    locations.map((location) => [location, { username: location, password: "p" }] as const),
    { type: "node" },
  );
  return keyring;
}

for (const { about, locations, image, users } of [
  {
    about: "the longer path comes first, the bare registry after it",
    locations: ["gcr.io", "gcr.io/team", "gcr.io/team/app", "quay.io"],
    image: "gcr.io/team/app",
    users: ["gcr.io/team/app", "gcr.io/team", "gcr.io"],
  },
  {
    about: "an exact host comes before a wildcard",
    locations: ["*.gcr.io", "eu.gcr.io"],
    image: "eu.gcr.io/x",
    users: ["eu.gcr.io", "*.gcr.io"],
  },
  {
    about: "Docker Hub images use the entry of the old index",
    locations: ["https://index.docker.io/v1/"],
    image: "docker.io/library/nginx",
    users: ["https://index.docker.io/v1/"],
  },
  {
    about: "an entry for docker.io makes the old index unneeded",
    locations: ["https://index.docker.io/v1/", "docker.io"],
    image: "docker.io/library/nginx",
    users: ["docker.io"],
  },
  {
    about: "another registry never gets Docker Hub's login",
    locations: ["index.docker.io"],
    image: "q.io/a",
    users: [],
  },
  { about: "nothing fits", locations: ["gcr.io"], image: "quay.io/a", users: [] },
  { about: "an unreadable location is left out", locations: ["a b", "gcr.io"], image: "gcr.io/a", users: ["gcr.io"] },
]) {
  test(`keyring: ${about}`, () => {
    const found = keyringOf(...locations).lookup(image);
    assert.deepEqual(
      found.map(({ username }) => username),
      users,
    );
  });
}

test("keyring: two sources of one location are both offered, in the order added", () => {
  const keyring = new Keyring();
  const secret = { type: "secret", uid: "u", namespace: "n", name: "s" } as const;
  keyring.add([["q.io", { username: "first", password: "1" }]], secret);
  keyring.add([["https://q.io/v2/", { username: "second", password: "2" }]], { type: "node" });
  assert.deepEqual(keyring.lookup("q.io/a"), [
    { username: "first", password: "1", source: secret },
    { username: "second", password: "2", source: { type: "node" } },
  ]);
});

const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("docker config: auth wins over username and password, padded or not, and may hold colons", () => {
  const config = parseDockerConfigJson(
    JSON.stringify({
      auths: {
        padded: { auth: base64("u:p"), username: "other", password: "other" },
        bare: { auth: base64("user:pa:ss").replaceAll("=", "") },
        plain: { username: "a", password: "b", email: "a@b" },
        empty: {},
      },
      credsStore: "ignored",
    }),
  );
  assert.deepEqual(Object.fromEntries(config), {
    padded: { username: "u", password: "p" },
    bare: { username: "user", password: "pa:ss" },
    plain: { username: "a", password: "b" },
    empty: { username: "", password: "" },
  });
  assert.deepEqual(parseDockerConfigJson("{}"), []);
  assert.deepEqual(parseDockerCfg('{"q.io":{"username":"u","password":"p"}}'), [
    ["q.io", { username: "u", password: "p" }],
  ]);
});

for (const { about, text, message } of [
  { about: "no JSON", text: '{"auths": {"q.io": {"password": "hunter2"}}', message: "not valid JSON" },
  { about: "a list", text: "[]", message: "not a JSON object" },
  { about: "auths a list", text: '{"auths":["hunter2"]}', message: "auths is not a JSON object" },
  {
    about: "an entry a string",
    text: '{"auths":{"q.io":"hunter2"}}',
    message: 'the entry of "q.io" is not a JSON object',
  },
  {
    about: "auth without colon",
    text: JSON.stringify({ auths: { "q.io": { auth: base64("hunter2") } } }),
    message: 'auth in the entry of "q.io" must be formatted as base64(username:password)',
  },
  {
    about: "auth not base64",
    text: '{"auths":{"q.io":{"auth":"hunter2:x!"}}}',
    message: 'auth in the entry of "q.io" must be formatted as base64(username:password)',
  },
  {
    about: "a number as password",
    text: '{"auths":{"q.io":{"password":2}}}',
    message: 'password in the entry of "q.io" is not a string',
  },
]) {
  test(`docker config: ${about} is refused without quoting the secret`, () => {
    assert.throws(
      () => parseDockerConfigJson(text),
      (error) => error instanceof DockerConfigError && error.message === message && !error.message.includes("hunter2"),
    );
  });
}
