import assert from "node:assert/strict";
import { readlinkSync } from "node:fs";
import { test } from "node:test";
import { CertificateAuthority, temporaryDirectory } from "../../../../test/support/certificates.ts";
import { advanceUntil, realTime } from "../../../../test/support/client-lab.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { FakeSigner } from "../../../../test/support/fake-signer.ts";
import { until } from "../../../../test/support/until.ts";
import { silentLogger, TaskScope } from "../../../ground/base/index.ts";
import { ApiError } from "../api-error.ts";
import { ConnectionError } from "../transport/index.ts";
import type { CertificateTemplate, KeptCertificate } from "./facts.ts";
import { CertificateFileStore } from "./file-store.ts";
import { guardClientCertificate } from "./guard.ts";
import { ManagedCredentials } from "./managed-credentials.ts";
import { servingTemplate } from "./node-names.ts";
import { CertificateRotation, clientUse, serverUse } from "./rotation.ts";

const node: CertificateTemplate = {
  commonName: "system:node:n",
  organizations: ["system:nodes"],
  dnsNames: [],
  ips: [],
};

class Fixture implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly signer = new FakeSigner(this.clock);
  readonly scope = new TaskScope();
  readonly directory: string;
  template: CertificateTemplate | undefined = node;
  /** What could be shown when each order was placed. */
  readonly shown: (KeptCertificate | undefined)[] = [];
  changes = 0;
  random = 0.5;
  readonly manager: CertificateRotation;

  constructor(use = clientUse, directory = temporaryDirectory("manager")) {
    this.directory = directory;
    const { clock } = this;
    this.manager = new CertificateRotation(use, {
      clock,
      log: silentLogger,
      random: () => this.random,
      store: new CertificateFileStore({ directory, prefix: "kubelet-client" }, { clock, log: silentLogger }),
      template: () => this.template,
      issue: (order, current, signal) => {
        this.shown.push(current);
        return this.signer.issue(order, signal);
      },
    });
    this.manager.onChange(() => this.changes++);
  }

  async start(): Promise<this> {
    await this.manager.load();
    this.scope.spawn("manager", (signal) => this.manager.run(signal));
    return this;
  }

  get orders(): number {
    return this.signer.orders.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scope.stop();
    assert.equal(this.clock.pendingTimers, 0, "no timer is left");
  }
}

/** Real time for the work that a moment of virtual time has caused; making keys takes some. */
async function pass(at: Fixture, ms: number): Promise<void> {
  await at.clock.advance(ms);
  await realTime(60);
}

test("asks for the first certificate at once, and then has it", async () => {
  await using at = await new Fixture().start();
  assert.equal(at.manager.ttlSeconds(), Number.POSITIVE_INFINITY);
  await until("at.changes === 1", () => at.changes === 1);
  assert.equal(at.manager.current?.facts.commonName, "system:node:n");
  assert.equal(at.manager.ttlSeconds(), 1_000);
  assert.ok(at.manager.serverAnswers);
  assert.match(readlinkSync(`${at.directory}/kubelet-client-current.pem`), /kubelet-client-2026-/);
  const [order] = at.signer.orders;
  assert.equal(order?.signerName, "kubernetes.io/kube-apiserver-client-kubelet");
  assert.deepEqual(order?.usages, ["digital signature", "client auth"]);
  assert.equal(order?.name, undefined);
});

for (const [random, share] of [
  [0, 0.7],
  [0.5, 0.8],
  [1, 0.9],
] as const) {
  test(`rotates when ${share * 100} % of the life is over, for a random number of ${random}`, async () => {
    await using at = new Fixture();
    at.random = random;
    const ages: number[] = [];
    at.manager.onRotated((age) => ages.push(age));
    await at.start();
    await until("at.changes === 1", () => at.changes === 1);
    await pass(at, share * 1_000_000 - 1);
    assert.equal(at.orders, 1);
    await pass(at, 1);
    await until("at.changes === 2", () => at.changes === 2);
    assert.equal(at.manager.ttlSeconds(), 1_000);
    assert.deepEqual(ages, [share * 1_000]);
    assert.notEqual(at.signer.orders[0]?.request, at.signer.orders[1]?.request, "with a new key");
    assert.equal(at.shown[0], undefined);
    assert.equal(at.shown[1]?.facts.commonName, "system:node:n");
  });
}

test("goes on with what an earlier run has kept", async () => {
  await using first = await new Fixture().start();
  await until("first.changes === 1", () => first.changes === 1);
  await using second = await new Fixture(clientUse, first.directory).start();
  await realTime(60);
  assert.equal(second.orders, 0);
  assert.equal(second.manager.current?.certificate, first.manager.current?.certificate);
});

test("a certificate that waits a year does not keep it busy", async () => {
  await using at = new Fixture();
  at.signer.lifetimeMs = 365 * 86_400_000;
  await at.start();
  await until("at.changes === 1", () => at.changes === 1);
  await at.clock.advance(30 * 86_400_000);
  assert.equal(at.orders, 1);
});

test("tries again after 2, 4, 8, 16, 32 s and then every 32 s, and keeps what it has meanwhile", async () => {
  await using at = new Fixture();
  at.random = 0;
  at.signer.answer = new ConnectionError("nobody is there", "no");
  await at.start();
  for (const [index, seconds] of [2, 4, 8, 16, 32, 32, 32].entries()) {
    await until("at.manager.renewErrors === index + 1", () => at.manager.renewErrors === index + 1);
    await pass(at, seconds * 1_000 - 1);
    assert.equal(at.orders, index + 1, `before ${seconds} s`);
    await pass(at, 1);
    await until("at.orders === index + 2", () => at.orders === index + 2);
  }
  assert.ok(!at.manager.serverAnswers);
  at.signer.answer = undefined;
  await advanceUntil(at.clock, 32_000, () => at.changes === 1);
  at.signer.answer = new ConnectionError("gone again", "no");
  await advanceUntil(at.clock, 10_000, () => at.manager.renewErrors > 9);
  assert.ok(at.manager.current !== undefined);
});

test("what has expired is not handed out, and another is asked for as a newcomer", async () => {
  await using at = await new Fixture().start();
  await until("at.changes === 1", () => at.changes === 1);
  at.signer.answer = new ConnectionError("nobody is there", "no");
  await advanceUntil(at.clock, 50_000, () => at.manager.hasExpired);
  assert.equal(at.manager.current, undefined);
  assert.ok(at.manager.ttlSeconds() <= 0);
  at.signer.answer = undefined;
  await advanceUntil(at.clock, 32_000, () => at.changes === 2);
  assert.equal(at.shown.at(-1), undefined);
  assert.ok(at.manager.current !== undefined);
});

for (const [what, behindMs] of [
  ["due as soon as it comes", 950_000],
  ["over before it comes", 2_000_000],
] as const) {
  test(`a certificate that is ${what}, for the server's clock is behind, is asked for again in good time`, async () => {
    await using at = new Fixture();
    at.random = 0;
    at.signer.behindMs = behindMs;
    await at.start();
    for (const [index, seconds] of [2, 4, 8].entries()) {
      await until("at.manager.renewErrors === index + 1", () => at.manager.renewErrors === index + 1);
      await pass(at, seconds * 1_000 - 1);
      assert.equal(at.orders, index + 1, `before ${seconds} s`);
      await pass(at, 1);
    }
    at.signer.behindMs = 0;
    await advanceUntil(at.clock, 16_000, () => at.manager.ttlSeconds() > 900);
    assert.ok(at.manager.current !== undefined);
  });
}

test("a borrowed certificate is used and replaced at once", async () => {
  await using at = new Fixture();
  const authority = await CertificateAuthority.create("authority");
  const { certPem, keyPem } = await authority.issueClient({ commonName: "admin", organizations: ["system:masters"] });
  await at.manager.borrow(certPem, keyPem);
  assert.equal(at.manager.current?.facts.commonName, "admin");
  await at.start();
  await until("at.changes === 1", () => at.changes === 1);
  assert.equal(at.shown[0]?.facts.commonName, "admin");
  assert.equal(at.manager.current?.facts.commonName, "system:node:n");
});

test("a serving certificate follows the node's addresses", async () => {
  await using at = new Fixture(serverUse);
  const addresses = (...ips: string[]) =>
    servingTemplate(
      "n",
      [...ips.map((address) => ({ type: "InternalIP", address })), { type: "Hostname", address: "n" }],
      {
        dnsOnly: false,
      },
    );
  at.template = addresses();
  await at.start();
  await realTime(60);
  assert.equal(at.orders, 0, "nobody could connect to a node without an address");

  at.template = addresses("10.0.0.1");
  at.manager.templateChanged();
  await until("at.changes === 1", () => at.changes === 1);
  assert.deepEqual(at.manager.current?.facts.ips, ["10.0.0.1"]);
  assert.deepEqual(at.manager.current?.facts.dnsNames, ["n"]);
  assert.deepEqual(at.signer.orders[0]?.usages, ["digital signature", "server auth"]);

  at.template = addresses("10.0.0.1", "fd00::1");
  at.manager.templateChanged();
  await until("at.changes === 2", () => at.changes === 2);
  assert.deepEqual(at.manager.current?.facts.ips, ["10.0.0.1", "fd00::1"]);

  at.template = addresses("fd00::1");
  at.manager.templateChanged();
  await realTime(60);
  assert.equal(at.orders, 2, "an address too many does no harm");
});

test("a request that nobody has decided yet is given up when the addresses change", async () => {
  await using at = new Fixture(serverUse);
  const template = (ip: string) => ({ ...node, ips: [ip] });
  at.template = template("10.0.0.1");
  at.signer.answer = "never";
  await at.start();
  await until("at.orders === 1", () => at.orders === 1);
  at.manager.templateChanged();
  await realTime(20);
  assert.equal(at.orders, 1, "nothing has changed");
  at.template = template("10.0.0.2");
  at.signer.answer = undefined;
  at.manager.templateChanged();
  await until("at.changes === 1", () => at.changes === 1);
  assert.deepEqual(at.manager.current?.facts.ips, ["10.0.0.2"]);
  assert.equal(at.manager.renewErrors, 0);
});

test("a certificate that names less than was asked for is used, and asked for again in good time", async () => {
  await using at = new Fixture(serverUse);
  at.random = 0;
  at.template = { ...node, ips: ["10.0.0.1"] };
  at.signer.drop = true;
  await at.start();
  await until("at.manager.renewErrors === 1", () => at.manager.renewErrors === 1);
  assert.equal(at.manager.current?.facts.commonName, "system:node:n");
  await pass(at, 1_999);
  assert.equal(at.orders, 1);
  at.signer.drop = false;
  await pass(at, 1);
  await until("at.changes === 2", () => at.changes === 2);
  assert.deepEqual(at.manager.current?.facts.ips, ["10.0.0.1"]);
});

test("requests wait for the first certificate and go out with it", async () => {
  await using at = new Fixture();
  const credentials = new ManagedCredentials(at.manager, at.clock);
  const { signal } = new AbortController();
  const waiting = credentials.certificate(signal);
  await at.start();
  const certificate = await waiting;
  assert.equal(certificate.certificate.toString(), at.manager.current?.certificate);
  assert.equal((await credentials.certificate(signal)).id, certificate.id);
  assert.deepEqual(await credentials.headers(), {});
  assert.equal(credentials.refused(), false);
  await advanceUntil(at.clock, 100_000, () => at.changes === 2);
  assert.notEqual((await credentials.certificate(signal)).id, certificate.id);
});

test("requests are given up when no certificate comes", async () => {
  await using at = new Fixture();
  const credentials = new ManagedCredentials(at.manager, at.clock);
  const failing = assert.rejects(credentials.certificate(new AbortController().signal), /no client certificate yet/);
  await at.clock.advance(10_000);
  await failing;
  const stop = new AbortController();
  const stopped = assert.rejects(credentials.certificate(stop.signal), /enough/);
  stop.abort(new Error("enough"));
  await stopped;
});

const refused = new ApiError({ code: 401, reason: "Unauthorized", message: "who are you", request: "POST" });
for (const [what, answer, ends] of [
  ["the server refuses us", refused, true],
  ["the server is away", new ConnectionError("nobody is there", "no"), false],
] as const) {
  test(`without a certificate for five minutes, and ${what}: the agent ${ends ? "ends" : "goes on"}`, async () => {
    await using at = new Fixture();
    at.signer.answer = answer;
    await at.start();
    await until("at.manager.renewErrors === 1", () => at.manager.renewErrors === 1);
    const guard = new TaskScope();
    guard.spawn("guard", (signal) =>
      guardClientCertificate(at.manager, { clock: at.clock, log: silentLogger }, signal),
    );
    await at.clock.advance(5 * 60_000);
    assert.ok(!guard.signal.aborted);
    await at.clock.advance(20_000);
    assert.equal(guard.signal.aborted, ends);
    if (ends) assert.match(String(guard.signal.reason.cause), /5m0s since a valid client cert was found/);
    await guard.stop();
  });
}

test("an expired certificate ends the agent as soon as the server refuses to renew it", async () => {
  await using at = await new Fixture().start();
  await until("at.changes === 1", () => at.changes === 1);
  await using guard = new TaskScope();
  guard.spawn("guard", (signal) => guardClientCertificate(at.manager, { clock: at.clock, log: silentLogger }, signal));
  at.signer.answer = refused;
  await at.clock.advance(990_000);
  await realTime(60);
  assert.ok(!guard.signal.aborted, "it is still valid");
  await advanceUntil(at.clock, 10_000, () => guard.signal.aborted);
  assert.match(String(guard.signal.reason.cause), /client certificate has expired and the server is responsive/);
});

for (const [name, addresses, wanted] of [
  ["none", [], undefined],
  ["only a name", [["Hostname", "n"]], undefined],
  [
    "an address and a name",
    [
      ["InternalIP", "10.0.0.2"],
      ["ExternalIP", "10.0.0.1"],
      ["Hostname", "n"],
    ],
    [["n"], ["10.0.0.1", "10.0.0.2"]],
  ],
  ["a name that is an address", [["Hostname", "10.0.0.9"]], [[], ["10.0.0.9"]]],
  [
    "names of all kinds",
    [
      ["InternalDNS", "b"],
      ["ExternalDNS", "a"],
      ["InternalIP", "10.0.0.1"],
      ["InternalIP", "10.0.0.1"],
    ],
    [["a", "b"], ["10.0.0.1"]],
  ],
  ["an address that is none", [["InternalIP", "nowhere"]], undefined],
] as const) {
  test(`what a serving certificate names: ${name}`, () => {
    const list = addresses.map(([type, address]) => ({ type, address }));
    const template = servingTemplate("n", list, { dnsOnly: false });
    assert.deepEqual(template && [template.dnsNames, template.ips], wanted);
  });
}

test("names alone suffice where that is allowed", () => {
  assert.deepEqual(servingTemplate("n", [{ type: "Hostname", address: "n" }], { dnsOnly: true })?.dnsNames, ["n"]);
});
