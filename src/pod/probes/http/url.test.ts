import assert from "node:assert/strict";
import { test } from "node:test";
import { requestHeaders } from "./headers.ts";
import { resolveLocation, sameHost, urlOf } from "./url.ts";

for (const [path, target, text = target] of [
  ["/", "/"],
  ["", "/"],
  ["/healthz", "/healthz"],
  ["healthz", "/healthz"],
  ["/healthz?a=b&c=%20d", "/healthz?a=b&c=%20d"],
  ["/q?a b", "/q?a%20b"],
  ["/a b", "/a%20b"],
  ["/a%20b", "/a%20b"],
  ["/a%2Fb/(c)!*'[]", "/a%2Fb/(c)!*'[]"],
  ["/a b%2Fc", "/a%20b/c"],
  ["/ü", "/%C3%BC"],
  ["/bad%zz?x", "/bad%25zz%3Fx"],
  ["/tab\tx", "/tab%09x"],
  ["/page#part", "/page", "/page#part"],
  ["//elsewhere/path", "/path"],
  ["http://elsewhere:99/path?x=1", "/path?x=1"],
] as const) {
  test(`path ${JSON.stringify(path)} asks for ${target}`, () => {
    const url = urlOf("http", "10.0.0.1", 8080, path);
    assert.equal(url.target, target);
    assert.equal(url.text, `http://10.0.0.1:8080${text}`);
  });
}

const countingStepUs = 10_000;

for (const [name, part] of [
  ["plain", "a"],
  ["escaped", "%20"],
  ["broken escapes", "%2"],
  ["letters beyond ASCII", "\u00fc"],
  ["question marks", "?"],
  ["hashes", "#"],
  ["slashes", "/"],
  ["colons", "a:"],
] as const) {
  test(`a path as long as 200,000 characters (${name}) takes as much longer as it is longer`, () => {
    /** Of 200,000 characters in `pieces` paths, in microseconds; the kernel counts in steps, so the least of some whole runs. */
    const cost = (pieces: number): number => {
      const path = `/${part.repeat(200_000 / pieces / part.length)}`;
      const runs = Array.from({ length: 4 }, () => {
        const before = process.cpuUsage();
        for (let piece = 0; piece < pieces; piece++) urlOf("http", "10.0.0.1", 8080, path);
        const { user, system } = process.cpuUsage(before);
        return user + system;
      });
      return Math.min(...runs) + countingStepUs;
    };
    cost(100);
    // Work that grows with the square of the length would take ten times as long in one piece.
    const ratio = cost(1) / cost(10);
    assert.ok(ratio < 6, `${ratio} times the time`);
  });
}

test("characters of any kind may stand in a query", () => {
  assert.equal(urlOf("http", "h", 1, "/?\u{1f600}\ud800 ").target, "/?%F0%9F%98%80%EF%BF%BD%20");
});

test("an IPv6 host stands in brackets", () => {
  assert.equal(urlOf("https", "fd00::1", 443, "/x").text, "https://[fd00::1]:443/x");
});

for (const [location, host, target] of [
  ["/next?x=1", true, "/next?x=1"],
  ["next", true, "/a/next"],
  ["http://10.0.0.1:9/x", true, "/x"],
  ["https://10.0.0.1/x", true, "/x"],
  ["//10.0.0.1/x", true, "/x"],
  ["http://10.0.0.2:8080/x", false, "/x"],
  ["http://example.com/", false, "/"],
] as const) {
  test(`location ${location} ${host ? "stays on" : "leaves"} the host`, () => {
    const from = urlOf("http", "10.0.0.1", 8080, "/a/b");
    const next = resolveLocation(location, from);
    assert.ok("target" in next);
    assert.equal(next.target, target);
    assert.equal(sameHost(from, next), host);
  });
}

test("IPv6 spellings and letter case name the same host", () => {
  const from = urlOf("http", "FD00:0::1", 80, "/");
  const next = resolveLocation("http://[fd00::1]/x", from);
  assert.ok("target" in next && sameHost(from, next));
  assert.ok(sameHost(urlOf("http", "Web", 80, "/"), urlOf("http", "web", 81, "/")));
});

test("a location that is no HTTP URL leads nowhere", () => {
  const from = urlOf("http", "10.0.0.1", 8080, "/");
  assert.deepEqual(resolveLocation("ftp://10.0.0.1/x", from), { problem: 'unsupported protocol scheme "ftp"' });
  assert.deepEqual(resolveLocation("http://[x", from), { problem: "not a URL" });
});

for (const { name, wanted, host, fields } of [
  { name: "defaults", wanted: [], host: undefined, fields: ["User-Agent: a/1", "Accept: */*"] },
  {
    name: "names are canonical, order and repeats kept",
    wanted: ["x-b: 1", "X-A: 2", "X-B: 3"],
    host: undefined,
    fields: ["User-Agent: a/1", "Accept: */*", "X-B: 1", "X-B: 3", "X-A: 2"],
  },
  { name: "own User-Agent", wanted: ["user-agent: me"], host: undefined, fields: ["User-Agent: me", "Accept: */*"] },
  { name: "empty User-Agent", wanted: ["User-Agent: "], host: undefined, fields: ["Accept: */*"] },
  {
    name: "own Accept",
    wanted: ["accept: text/html"],
    host: undefined,
    fields: ["User-Agent: a/1", "Accept: text/html"],
  },
  { name: "empty Accept", wanted: ["Accept: "], host: undefined, fields: ["User-Agent: a/1"] },
  { name: "Host", wanted: ["host: web.example"], host: "web.example", fields: ["User-Agent: a/1", "Accept: */*"] },
  {
    name: "the connection's own headers are refused",
    wanted: ["Connection: keep-alive", "Content-Length: 5", "Transfer-Encoding: chunked"],
    host: undefined,
    fields: ["User-Agent: a/1", "Accept: */*"],
  },
]) {
  test(`headers: ${name}`, () => {
    const pairs = wanted.map((line) => {
      const [header = "", value = ""] = line.split(": ");
      return { name: header.replace(/:$/, ""), value };
    });
    const headers = requestHeaders(pairs, "a/1");
    assert.equal(headers.host, host);
    assert.deepEqual(
      headers.fields.map(([header, value]) => `${header}: ${value}`),
      fields,
    );
  });
}
