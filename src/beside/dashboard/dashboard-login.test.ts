import assert from "node:assert/strict";
import { mkdir, rmdir, stat } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { ServedDashboard, ShownNode } from "../../../test/support/dashboard.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { freePort } from "../../../test/support/free-port.ts";
import { until } from "../../../test/support/until.ts";

test("a token that only root can read is good for one login, and the cookie for what follows", async () => {
  await using served = await ServedDashboard.start();
  assert.equal((await stat(served.tokenFile)).mode & 0o777, 0o600);
  assert.equal((await served.ask("api/state")).status, 401);
  const token = await served.token();
  const login = await served.logIn(token);
  assert.equal(login.status, 200);
  const [cookie = ""] = login.headers["set-cookie"] ?? [];
  assert.match(cookie, /^nodelet-\d+=[\w-]{43}; Path=\/dashboard\/; HttpOnly; SameSite=Strict$/);
  assert.equal((await served.ask("api/state")).status, 200);
  const known = served.cookie;
  served.cookie = "";
  assert.equal((await served.logIn(token)).status, 403, "the token was used already");
  assert.equal((await served.ask("api/state", { headers: { Cookie: `nodelet-${served.port}=x` } })).status, 401);
  // What listens on another port of this machine is shown the cookie by the browser, and never the key.
  assert.equal((await served.ask("api/state", { headers: { Cookie: known } })).status, 401);
});

test("sessions outlive the agent, but neither the boot nor the day", async () => {
  const clock = new FakeClock();
  const first = await ServedDashboard.start(new ShownNode<FakeClock>(clock));
  await first.logIn();
  await first.stop();
  const { cookie, key } = first;
  const session = { cookie: cookie.slice(cookie.indexOf("=") + 1), key };
  const { Sessions } = await import("./door/sessions.ts");
  const opened = async (bootId: string) => {
    const sessions = new Sessions({ clock, path: first.tokenFile, address: "a", bootId });
    await sessions.restore();
    return sessions.isKnown(session);
  };
  assert.equal(await opened("boot-1"), true);
  await clock.advance(13 * 3_600_000);
  assert.equal(await opened("boot-1"), false, "after a day");
  clock.setBack(13 * 3_600_000);
  await first.logIn().catch(() => undefined);
  assert.equal(await opened("boot-2"), false, "after a boot");
  await first[Symbol.asyncDispose]();
});

test("every answer says what the browser may do with it", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const page = await served.ask("");
  const policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
  for (const answer of [
    page,
    await served.ask("api/state"),
    await served.ask("api/nothing"),
    await served.ask("x.js"),
  ]) {
    assert.equal(answer.headers["content-security-policy"], policy);
    assert.equal(answer.headers["x-content-type-options"], "nosniff");
    assert.equal(answer.headers["referrer-policy"], "no-referrer");
    assert.equal(answer.headers["cross-origin-opener-policy"], "same-origin");
    assert.equal(answer.headers["cross-origin-resource-policy"], "same-origin");
    assert.equal(answer.headers["access-control-allow-origin"], undefined);
  }
  assert.equal(page.headers["cache-control"], "no-store");
  assert.equal((await served.ask("api/state")).headers["cache-control"], "no-store");
  const script = await served.ask("app-ABC.js");
  assert.deepEqual([script.text, script.headers["cache-control"]], ["script", "public, max-age=31536000, immutable"]);
  const packed = await served.ask("app-ABC.js", { headers: { "Accept-Encoding": "gzip" } });
  assert.equal(packed.headers["content-encoding"], "gzip");
});

test("nothing but the login is anything else than a GET, and no path leads out", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
    assert.equal((await served.ask("api/state", { method })).status, 405, method);
  }
  assert.equal((await served.ask("api/login")).status, 405);
  for (const path of ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%00", "nodelet/dashboard.json", "__proto__"]) {
    assert.equal((await served.ask(path)).status, 404, path);
  }
  const form = { "Content-Type": "text/plain", Origin: `http://127.0.0.1:${served.port}` };
  assert.equal((await served.ask("api/login", { method: "POST", headers: form, body: "{}" })).status, 415);
});

test("a disk that takes no token keeps nobody from their pods, and no session from its page", async () => {
  const { DashboardListener } = await import("./index.ts");
  await using served = await ServedDashboard.start();
  const { clock } = served.node;
  const directory = dirname(served.tokenFile);
  await served.logIn();
  // A directory where the file is to be written first: as a full disk has it.
  await mkdir(`${served.tokenFile}.tmp`);
  const [token, again] = [await served.token(), await served.token()];
  assert.equal((await served.logIn(token)).status, 200, "who comes while the disk is full is let in");
  assert.equal((await served.logIn(again)).status, 200, "as long as the file can't be renewed");
  const said: string[] = [];
  const log = { ...served.node.ports().log, warn: (text: string) => said.push(text) };
  const listener = new DashboardListener(
    { host: "127.0.0.1", port: await freePort() },
    { clock, log, tokenFile: join(directory, "dashboard.json"), bootId: "other", dashboard: () => Promise.reject() },
  );
  assert.equal(await listener.listen(), true);
  assert.deepEqual(said, ["Nobody can log in to the dashboard yet"]);
  const stop = new AbortController();
  const serving = listener.serve(stop.signal);
  await rmdir(`${served.tokenFile}.tmp`);
  await clock.advance(30_000);
  await until("a token is there", async () => (await served.token()) !== token);
  stop.abort();
  await serving;
});

test("strangers who say nothing keep nobody out", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const viewer = await served.open("api/live");
  viewer.resume();
  const idle = Array.from({ length: 110 }, () => connect(served.port, "127.0.0.1").on("error", () => {}));
  await until("they are there", () => idle.every(({ connecting }) => !connecting));
  assert.equal((await served.ask("api/state")).status, 200);
  assert.equal(viewer.destroyed, false, "who is logged in stays");
  for (const socket of idle) socket.destroy();
});
