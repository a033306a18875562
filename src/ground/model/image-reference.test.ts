import assert from "node:assert/strict";
import { test } from "node:test";
import {
  defaultPullPolicy,
  ImageNameError,
  parseImage,
  parseImageReference,
  repositoryOf,
  withDefaultTag,
} from "./image-reference.ts";

const sha = `sha256:${"ab12".repeat(16)}`;

for (const { name, repository, tag, digest } of [
  { name: "nginx", repository: "docker.io/library/nginx" },
  { name: "nginx:1.27", repository: "docker.io/library/nginx", tag: "1.27" },
  { name: "team/app", repository: "docker.io/team/app" },
  { name: "docker.io/nginx", repository: "docker.io/library/nginx" },
  { name: "index.docker.io/nginx", repository: "docker.io/library/nginx" },
  { name: "index.docker.io/team/app:v1", repository: "docker.io/team/app", tag: "v1" },
  { name: "localhost/app", repository: "localhost/app" },
  { name: "localhost:5000/app:v1", repository: "localhost:5000/app", tag: "v1" },
  { name: "registry.k8s.io/pause:3.6", repository: "registry.k8s.io/pause", tag: "3.6" },
  { name: "UPPER/app", repository: "UPPER/app" },
  { name: "[::1]:5000/a/b:t", repository: "[::1]:5000/a/b", tag: "t" },
  { name: "127.0.0.1:5000/a-b_c__d.e", repository: "127.0.0.1:5000/a-b_c__d.e" },
  { name: `nginx@${sha}`, repository: "docker.io/library/nginx", digest: sha },
  { name: `q.io/a/b:v1@${sha}`, repository: "q.io/a/b", tag: "v1", digest: sha },
  { name: "a--b/c", repository: "docker.io/a--b/c" },
]) {
  test(`parse ${name}`, () => {
    const reference = parseImageReference(name);
    assert.equal(repositoryOf(reference), repository);
    assert.equal(reference.tag, tag);
    assert.equal(reference.digest, digest);
  });
}

for (const { name, message } of [
  { name: "", message: "invalid reference format" },
  { name: "Nginx", message: "invalid reference format: repository name (library/Nginx) must be lowercase" },
  { name: "q.io/Team/app:V1", message: "invalid reference format: repository name (Team/app) must be lowercase" },
  { name: "ab12".repeat(16), message: `invalid repository name (${"ab12".repeat(16)}), cannot specify 64-byte` },
  { name: "nginx:", message: "invalid reference format" },
  { name: "nginx:-tag", message: "invalid reference format" },
  { name: `nginx:${"t".repeat(129)}`, message: "invalid reference format" },
  { name: "q.io/a..b", message: "invalid reference format" },
  { name: "q.io/a___b", message: "invalid reference format" },
  { name: "q.io//a", message: "invalid reference format" },
  { name: "-q.io/a", message: "invalid reference format" },
  { name: "nginx latest", message: "invalid reference format" },
  { name: "https://q.io/a", message: "invalid reference format" },
  { name: `q.io/${"a".repeat(256)}`, message: "repository name must not be more than 255 characters" },
  { name: "nginx@sha256:abcd", message: "invalid reference format" },
  { name: `nginx@sha256:${"a".repeat(63)}`, message: "invalid checksum digest length" },
  { name: `nginx@sha256:${"A".repeat(64)}`, message: "invalid checksum digest format" },
  { name: `nginx@md5:${"a".repeat(32)}`, message: "unsupported digest algorithm" },
]) {
  test(`refuse "${name.slice(0, 40)}"`, () => {
    assert.throws(
      () => parseImageReference(name),
      (error) => error instanceof ImageNameError && error.message.startsWith(message),
    );
    assert.throws(() => parseImage(name), {
      message: new RegExp(`^couldn't parse image name "${name.replaceAll(/[[\]./]/g, "\\$&")}": `),
    });
  });
}

test("a path of exactly 255 characters passes, whatever the registry's length", () => {
  assert.equal(parseImageReference(`registry.example.com/${"a".repeat(255)}`).path.length, 255);
});

for (const { name, tagged } of [
  { name: "nginx", tagged: "nginx:latest" },
  { name: "nginx:1", tagged: "nginx:1" },
  { name: "localhost:5000/nginx", tagged: "localhost:5000/nginx:latest" },
  { name: `nginx@${sha}`, tagged: `nginx@${sha}` },
  { name: `q.io/nginx:1@${sha}`, tagged: `q.io/nginx:1@${sha}` },
]) {
  test(`default tag of ${name}`, () => {
    assert.equal(withDefaultTag(name), tagged);
  });
}

for (const [name, policy] of [
  ["nginx", "Always"],
  ["nginx:latest", "Always"],
  ["localhost:5000/nginx", "Always"],
  ["nginx:1.27", "IfNotPresent"],
  [`nginx@${sha}`, "IfNotPresent"],
  [`nginx:1@${sha}`, "IfNotPresent"],
  [`nginx:latest@${sha}`, "Always"],
  ["NOT valid", "IfNotPresent"],
] as const) {
  test(`default pull policy of ${name}`, () => assert.equal(defaultPullPolicy(name), policy));
}
