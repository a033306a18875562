import assert from "node:assert/strict";
import { Informer, resources } from "../../src/connections/kube/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../src/ground/base/index.ts";
import type { Pod } from "../../src/ground/model/index.ts";
import type { Reply, SeenRequest } from "../support/api-stand-in.ts";
import { ClientLab, generous } from "../support/client-lab.ts";
import { type FuzzRandom, fuzzTest, patienceMs } from "./fuzzing.ts";

const never = new AbortController().signal;

fuzzTest("an API server that answers nonsense is followed again as soon as it makes sense", async (fuzz) => {
  const { random } = fuzz;
  const lab = new ClientLab();
  try {
    await using server = await lab.server(random.pick(["h2", "https/1.1"] as const));
    const truth = { pods: new Map<string, Pod>(), version: 1_000 };
    let isOdd = true;
    server.script = (request, reply) =>
      isOdd ? answerOddly(request, reply, random) : answerWell(request, reply, truth);
    // Time passes a thousand times as fast, so that pauses after failures cost little.
    const clock = { ...systemClock, sleep: (ms: number, signal: AbortSignal) => systemClock.sleep(ms / 1_000, signal) };
    using clients = await lab.clients(server.url, { clock, settings: { ...generous, main: { qps: 1e6, burst: 1e6 } } });
    const ports = { client: clients.main, clock, log: silentLogger, random: () => random.fraction() };
    const informer = new Informer<Pod>({ resource: resources.pods, keep: (pod) => pod }, ports);
    await using scope = new TaskScope();
    scope.spawn("follow", (signal) => informer.run(signal));
    while (fuzz.goesOn()) {
      isOdd = true;
      await systemClock.sleep(random.below(500), never);
      if (random.chance(0.3)) server.cutAll();
      const name = `pod-${random.below(10)}`;
      truth.version++;
      if (random.chance(0.3)) truth.pods.delete(name);
      else truth.pods.set(name, podOf(name, truth.version));
      isOdd = false;
      server.cutAll();
      const wanted = (): readonly string[] => [...truth.pods.values()].map(identity).sort();
      const seen = (): readonly string[] => informer.list().map(identity).sort();
      const limit = systemClock.monotonic() + patienceMs;
      while (JSON.stringify(seen()) !== JSON.stringify(wanted()) && systemClock.monotonic() < limit) {
        await systemClock.sleep(5, never);
      }
      assert.deepEqual(seen(), wanted());
      assert.equal(scope.signal.aborted, false);
    }
  } finally {
    lab.remove();
  }
});

function identity({ metadata }: Pod): string {
  return `${metadata?.name}@${metadata?.resourceVersion}`;
}

function podOf(name: string, version: number): Pod {
  const metadata = { name, namespace: "default", uid: `${name}-uid`, resourceVersion: String(version) };
  return { apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [] } };
}

function answerWell(
  { query }: SeenRequest,
  reply: Reply,
  truth: { readonly pods: ReadonlyMap<string, Pod>; readonly version: number },
): void {
  if (query.get("watch") !== null) {
    // What came before is unknown here; a list is asked for.
    const gone = { kind: "Status", code: 410, reason: "Expired", metadata: {} };
    const isCurrent = query.get("resourceVersion") === String(truth.version);
    reply.status(200);
    if (!isCurrent) reply.end(`${JSON.stringify({ type: "ERROR", object: gone })}\n`);
    return;
  }
  const metadata = { resourceVersion: String(truth.version) };
  reply.json({ kind: "PodList", apiVersion: "v1", metadata, items: [...truth.pods.values()] });
}

function answerOddly({ query }: SeenRequest, reply: Reply, random: FuzzRandom): void {
  const isWatch = query.get("watch") !== null;
  if (random.chance(0.2)) {
    reply.cut();
    return;
  }
  const code = random.pick([200, 200, 200, 200, 204, 302, 400, 401, 403, 404, 410, 429, 500, 503]);
  const headers = random.pick<Record<string, string>>([
    {},
    { "retry-after": "-1" },
    { "retry-after": "odd" },
    { "content-type": "text/html" },
  ]);
  reply.status(code, headers);
  for (let part = random.below(5); part > 0; part--) reply.write(isWatch ? oddEvent(random) : oddList(random));
  const ending = random.below(3);
  if (ending === 0) reply.cut();
  else if (ending === 1 || !isWatch) reply.end();
}

function oddEvent(random: FuzzRandom): string | Uint8Array {
  const type = random.pick(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "ODD", "", "__proto__"]);
  const whole = `${JSON.stringify({ type, object: oddObject(random) })}\n`;
  return random.pick([
    whole,
    whole,
    whole.slice(0, random.below(whole.length)),
    random.bytes(200),
    "\n\n",
    "null\n",
    "[]\n",
    "{}\n",
  ]);
}

function oddList(random: FuzzRandom): string | Uint8Array {
  const items = Array.from({ length: random.below(5) }, () => oddObject(random));
  const metadata = random.pick<unknown>([
    {},
    { resourceVersion: "5" },
    { continue: "more", resourceVersion: "-1" },
    "odd",
  ]);
  const whole = JSON.stringify({ kind: "PodList", metadata, items });
  return random.pick([
    whole,
    whole.slice(0, random.below(whole.length)),
    random.bytes(200),
    "null",
    "[]",
    "{}",
    "[".repeat(50_000),
  ]);
}

function oddObject(random: FuzzRandom): unknown {
  const name = `pod-${random.below(10)}`;
  return random.pick<unknown>([
    podOf(name, random.below(3_000)),
    { ...podOf(name, 0), metadata: { name, resourceVersion: random.text(10) } },
    { metadata: { name: "__proto__", namespace: "constructor", uid: "u" } },
    { metadata: {} },
    { kind: "Status", code: 410 },
    { kind: "Status", code: "odd", message: { a: 1 } },
    "text",
    7,
    {},
  ]);
}
