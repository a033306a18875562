import assert from "node:assert/strict";
import { test } from "node:test";
import { heard, ServedDashboard } from "../../../test/support/dashboard.ts";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { processorTime } from "../../../test/support/processor-time.ts";
import { until } from "../../../test/support/until.ts";

for (const { what, headers, status } of [
  { what: "its own name", headers: {}, status: 200 },
  { what: "localhost by a forwarded port", headers: { Host: "localhost:9999" }, status: 200 },
  { what: "a name that resolves to this machine", headers: { Host: "evil.example:4194" }, status: 403 },
  { what: "another address", headers: { Host: "10.0.0.1" }, status: 403 },
  { what: "a page of another site", headers: { Origin: "http://evil.example" }, status: 403 },
  { what: "a page of another port", headers: { Origin: "http://127.0.0.1:1" }, status: 403 },
  { what: "a script of another site", headers: { "Sec-Fetch-Site": "cross-site" }, status: 403 },
  {
    what: "a link on another site",
    headers: { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document" },
    status: 200,
  },
] as const) {
  test(`a request from ${what} gets ${status}`, async () => {
    await using served = await ServedDashboard.start();
    assert.equal((await served.ask("", { headers })).status, status);
  });
}

/** What the stream has said so far. */
test("what a pod waits for is told when it changes", async () => {
  await using served = await ServedDashboard.start();
  const { node } = served;
  await served.logIn();
  node.put(testPod());
  const all = heard(await served.open("api/live"));
  await until("the pod is told", () => all.text.includes("uid-1"));
  node.ledger.block("uid-1" as never, { reason: "ImagePullBackOff", message: "no such image", nextTryAt: 1 });
  await node.clock.advance(50);
  await until("its wait is told", () => all.text.includes('"reason":"ImagePullBackOff"'));
});

test("what is secret does not leave", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const pod = testPod(
    {
      containers: [
        {
          name: "main",
          image: "busybox",
          command: ["sh", "-c", "PGPASSWORD='hunter2' psql --api-key hunter2"],
          args: ["--db-password=hunter2", "--url=https://me:hunter2@example.org/", "--token", "hunter2", "--verbose"],
          env: [
            { name: "DB_PASSWORD", value: "hunter2" },
            { name: "API_KEY", value: "hunter2" },
            { name: "PASSWORD_OF_DB", value: "hunter2" },
            { name: "SIGNER", value: "-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----" },
            { name: "FROM_SECRET", valueFrom: { secretKeyRef: { name: "db", key: "password" } } },
            { name: "SETTINGS", value: '{"inner":"{\\"password\\": \\"hunter2\\"}"}' },
            { name: "HINT", value: "use-eyJhbGciOiJIUzI1NiJ9.hunter2hunter2.hunter2 or eyJ-short.words.here" },
            { name: "PGPASS", value: "hunter2" },
            { name: "SIGNING_KEY_BASE64", value: "hunter2" },
            { name: "DATABASE", value: "server=db;user=me;pwd=hunter2;" },
            { name: "GITHUB", value: "ghp_hunter2hunter2" },
            { name: "TELL", value: "https://hooks.slack.com/services/T0/B0/hunter2" },
            { name: "COLOUR", value: "green" },
          ],
          livenessProbe: { httpGet: { port: 80, httpHeaders: [{ name: "X-Auth-Token", value: "hunter2" }] } },
        },
      ],
    },
    { annotations: { "kubectl.kubernetes.io/last-applied-configuration": '{"password":"hunter2"}', colour: "blue" } },
  );
  const message = 'Readiness probe failed: Get "http://10.0.0.7:80/health?api_key=hunter2&deep=1": connection refused';
  served.node.put({ ...pod, status: { phase: "Running", conditions: [{ type: "Ready", status: "False", message }] } });
  const yaml = await served.ask("api/pods/uid-1/yaml");
  assert.equal(yaml.status, 200);
  for (const { text } of [yaml, await served.ask("api/pods/uid-1"), await served.ask("api/state")]) {
    assert.doesNotMatch(text, /hunter2/);
  }
  assert.match(yaml.text, /name: FROM_SECRET/);
  assert.match(yaml.text, /value: green/);
  assert.match(yaml.text, /- --verbose/);
  assert.match(yaml.text, /colour: blue/);
  assert.match((await served.ask("api/pods/uid-1")).text, /health\?api_key=<hidden>&deep=1/);
  assert.match(yaml.text, /use-<hidden> or eyJ-short\.words\.here/);
  assert.equal((await served.ask("api/pods/nobody")).status, 404);
});

test("texts that are made to be slow to look through hold nobody up", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const manyOf = (text: string): string => text.repeat(Math.ceil(256_000 / text.length));
  const flag = `--${manyOf("passw")}!`;
  served.node.put(
    testPod(
      { containers: [{ ...testContainer("main"), args: [flag, "value", manyOf("token=\\")] }] },
      {
        annotations: {
          ...{ tokens: manyOf("eyJ-"), dotted: manyOf("eyJaaaaaaaa.") },
          ...{ asked: manyOf("?token&passw"), marked: manyOf("glpat-aaaaaaaa ") },
        },
      },
    ),
  );
  const took = await processorTime(async () => assert.equal((await served.ask("api/pods/uid-1/yaml")).status, 200));
  // The square of these lengths takes a minute.
  assert.ok(took < 5_000_000, `${took} us`);
});

test("a port that another program has is said, and stops nobody", async () => {
  await using served = await ServedDashboard.start();
  const { DashboardListener } = await import("./index.ts");
  const said: unknown[] = [];
  const log = { ...served.node.ports().log, warn: (...words: unknown[]) => said.push(words) };
  const listener = new DashboardListener(
    { host: "127.0.0.1", port: served.port },
    {
      clock: served.node.clock,
      log,
      tokenFile: "/nonexistent/x",
      bootId: "",
      dashboard: () => Promise.reject(new Error("never asked")),
    },
  );
  assert.equal(await listener.listen(), false);
  assert.match(JSON.stringify(said), /another program has the port/);
});

test("a disk that hangs holds up nothing else", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const { node } = served;
  let asked = 0;
  node.disk = () => {
    asked++;
    return new Promise<never>(() => {});
  };
  const all = heard(await served.open("api/live"));
  for (let round = 0; round < 20; round++) await node.clock.advance(1_000);
  await until("samples come", () => all.text.split("event: sample").length > 5);
  assert.equal(asked, 1, "it is not asked again while it hangs: each asking holds a thread");
});
