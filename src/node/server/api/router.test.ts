import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiMount, accepts, findMount, matchRoute } from "./router.ts";

const handle = (): void => {};
const mounts: readonly ApiMount[] = [
  { type: "path", path: "/healthz", handle },
  { type: "paths", has: (path) => path === "/healthz/ping", handle },
  { type: "service", path: "/pods", routes: [{ methods: ["GET"], pattern: "", produces: "application/json", handle }] },
  {
    type: "service",
    path: "/logs/",
    routes: [
      { methods: ["GET"], pattern: "", handle },
      { methods: ["GET"], pattern: "{path*}", handle },
    ],
  },
  {
    type: "service",
    path: "/exec",
    routes: [
      { methods: ["GET", "POST"], pattern: "{ns}/{pod}/{container}", handle },
      { methods: ["GET", "POST"], pattern: "{ns}/{pod}/{uid}/{container}", handle },
    ],
  },
  { type: "disabled", path: "/run/", reason: "Debug endpoints are disabled." },
];

for (const [path, expected] of [
  ["/healthz", "/healthz"],
  ["/healthz/", undefined],
  ["/healthz/ping", "ping"],
  ["/healthz/other", undefined],
  ["/pods", "/pods"],
  ["/pods/", "/pods"],
  ["/pods/x", "/pods"],
  ["/podsx", undefined],
  ["/logs", "-> /logs/"],
  ["/logs/", "/logs/"],
  ["/logs/a/b", "/logs/"],
  ["/run", "-> /run/"],
  ["/run/a", "/run/"],
  ["/", undefined],
  ["/other", undefined],
] as const) {
  test(`${path} belongs to ${expected ?? "nothing"}`, () => {
    const found = findMount(mounts, path);
    if (found?.type === "redirect") assert.equal(`-> ${found.location}`, expected);
    else if (found?.mount.type === "paths") assert.equal(expected, "ping");
    else assert.equal(found?.mount.path, expected);
  });
}

function match(path: string, method = "GET", accept?: string) {
  const found = findMount(mounts, path);
  assert.equal(found?.type, "mount");
  if (found?.type !== "mount") throw new Error("no mount");
  const result = matchRoute(found.mount, method, path, accept);
  return result.type === "route" ? result.params : { ...result };
}

const refused = (status: number, text: string, allow?: string[]) => ({
  type: "refused",
  status,
  text,
  ...(allow && { allow }),
});

for (const [what, actual, expected] of [
  ["the service itself", match("/pods"), {}],
  ["with a slash", match("/pods/"), {}],
  ["below it", match("/pods/x"), refused(404, "404: Page Not Found")],
  ["HEAD is not GET", match("/pods", "HEAD"), refused(405, "405: Method Not Allowed", ["GET"])],
  [
    "Accept without JSON",
    match("/pods", "GET", "text/html"),
    refused(406, "406: Not Acceptable\n\nAvailable representations: application/json"),
  ],
  ["Accept with JSON", match("/pods", "GET", "text/html, application/json;q=0.5"), {}],
  ["three elements", match("/exec/a/b/c", "POST"), { ns: "a", pod: "b", container: "c" }],
  ["four elements", match("/exec/a/b/u/c"), { ns: "a", pod: "b", uid: "u", container: "c" }],
  ["too few elements", match("/exec/a/b"), refused(404, "404: Page Not Found")],
  [
    "methods of all fitting routes",
    match("/exec/a/b/c", "PUT"),
    refused(405, "405: Method Not Allowed", ["GET", "POST"]),
  ],
  ["no rest", match("/logs/"), {}],
  ["a rest", match("/logs/a/b"), { path: "a/b" }],
  ["a rest that is a directory", match("/logs/a/"), { path: "a/" }],
  ["disabled", match("/run/a", "POST"), refused(405, "Debug endpoints are disabled.\n")],
  ["any method where there is no list", match("/healthz", "DELETE"), {}],
] as const) {
  test(`match: ${what}`, () => assert.deepEqual(actual, expected));
}

for (const [header, accepted] of [
  [undefined, true],
  ["", true],
  ["*/*", true],
  ["application/*", true],
  ["application/json; charset=utf-8", true],
  ["text/plain", false],
  ["application/json;q=0", false],
  ["application/json;q=0.0, text/*", false],
] as const) {
  test(`Accept ${header} ${accepted ? "takes" : "refuses"} JSON`, () =>
    assert.equal(accepts(header, "application/json"), accepted));
}
