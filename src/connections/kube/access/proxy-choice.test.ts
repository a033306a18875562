import assert from "node:assert/strict";
import { test } from "node:test";
import { proxyFromEnvironment } from "./proxy-choice.ts";

const proxy = "http://proxy.example:3128/";
for (const { server, environment, expected } of [
  { server: "https://api.example:6443", environment: {}, expected: undefined },
  { server: "https://api.example:6443", environment: { HTTPS_PROXY: proxy }, expected: proxy },
  { server: "https://api.example:6443", environment: { https_proxy: "proxy.example:3128" }, expected: proxy },
  { server: "https://api.example:6443", environment: { HTTP_PROXY: proxy }, expected: undefined },
  { server: "http://api.example", environment: { HTTP_PROXY: proxy }, expected: proxy },
  { server: "https://127.0.0.1:6443", environment: { HTTPS_PROXY: proxy }, expected: undefined },
  { server: "https://[::1]:6443", environment: { HTTPS_PROXY: proxy }, expected: undefined },
  { server: "https://localhost:6443", environment: { HTTPS_PROXY: proxy }, expected: undefined },
  { server: "https://api.example", environment: { HTTPS_PROXY: proxy, NO_PROXY: "*" }, expected: undefined },
  { server: "https://api.example", environment: { HTTPS_PROXY: proxy, NO_PROXY: "a, example" }, expected: undefined },
  { server: "https://api.example", environment: { HTTPS_PROXY: proxy, NO_PROXY: ".example" }, expected: undefined },
  { server: "https://example", environment: { HTTPS_PROXY: proxy, NO_PROXY: ".example" }, expected: proxy },
  { server: "https://my-example", environment: { HTTPS_PROXY: proxy, NO_PROXY: "example" }, expected: proxy },
  { server: "https://API.Example", environment: { HTTPS_PROXY: proxy, no_proxy: "api.EXAMPLE" }, expected: undefined },
  {
    server: "https://api.example:6443",
    environment: { HTTPS_PROXY: proxy, NO_PROXY: "api.example:6443" },
    expected: undefined,
  },
  {
    server: "https://api.example:6443",
    environment: { HTTPS_PROXY: proxy, NO_PROXY: "api.example:443" },
    expected: proxy,
  },
  {
    server: "https://api.example",
    environment: { HTTPS_PROXY: proxy, NO_PROXY: "api.example:443" },
    expected: undefined,
  },
  { server: "https://10.1.2.3:6443", environment: { HTTPS_PROXY: proxy, NO_PROXY: "10.0.0.0/8" }, expected: undefined },
  { server: "https://11.1.2.3:6443", environment: { HTTPS_PROXY: proxy, NO_PROXY: "10.0.0.0/8" }, expected: proxy },
  { server: "https://10.1.2.3:6443", environment: { HTTPS_PROXY: proxy, NO_PROXY: "10.1.2.3" }, expected: undefined },
  { server: "https://10.1.2.3:6443", environment: { HTTPS_PROXY: proxy, NO_PROXY: "10.0.0.0/99" }, expected: proxy },
  { server: "https://[fd00::1]:6443", environment: { HTTPS_PROXY: proxy, NO_PROXY: "fd00::/8" }, expected: undefined },
  {
    server: "https://[fd00::1]:6443",
    environment: { HTTPS_PROXY: proxy, NO_PROXY: "[fd00::1]:6443" },
    expected: undefined,
  },
]) {
  test(`${server} with ${JSON.stringify(environment)}`, () => {
    assert.equal(proxyFromEnvironment(new URL(server), environment)?.href, expected);
  });
}
