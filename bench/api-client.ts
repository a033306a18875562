// Requests per second, and the memory and CPU of 100 watches, over HTTP/2 and HTTP/1.1 against a local server.
// Usage: npm run bench api-client [-- RUNS]
import { fork } from "node:child_process";
import { once, setMaxListeners } from "node:events";
import { readFileSync } from "node:fs";
import {
  Informer,
  KubeClients,
  parseKubeconfig,
  resources,
  withoutManagedFields,
} from "../src/connections/kube/index.ts";
import { silentLogger, systemClock, TaskScope } from "../src/ground/base/index.ts";
import type { ConfigMap } from "../src/ground/model/index.ts";
import { ApiStandIn, type Reply } from "../test/support/api-stand-in.ts";
import { TestAuthority } from "../test/support/test-certificates.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const requests = 2_000;
const inParallel = 16;
const watches = 100;
const rounds = 20;
const never = new AbortController().signal;
setMaxListeners(0, never);

interface Sample {
  readonly perSecond: number;
  readonly oneByOneMs: number;
  readonly watchMb: number;
  readonly cpuMsPer1000Events: number;
}

const [firstWord = "5", kubeconfig = "", ...flags] = process.argv.slice(2);
if (firstWord === "client") await beClient();
else await compare(Number(firstWord));

async function compare(runs: number): Promise<void> {
  const authority = new TestAuthority();
  const open = new Set<Reply>();
  const object = { metadata: { namespace: "ns", name: "a", uid: "u" }, data: { text: "x".repeat(1_000) } };
  const server = await ApiStandIn.start({
    protocol: "h2",
    tls: authority.server(),
    script: ({ query, path }, reply) => {
      if (query.get("watch") === "true") {
        reply.status(200);
        open.add(reply);
        reply.onClose(() => open.delete(reply));
      } else if (path.endsWith("/configmaps")) reply.json({ metadata: { resourceVersion: "1" }, items: [] });
      else reply.json(object);
    },
  });
  const config = JSON.stringify({
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "k" } }],
    clusters: [
      {
        name: "k",
        cluster: {
          server: server.url,
          "certificate-authority-data": Buffer.from(authority.certificate).toString("base64"),
        },
      },
    ],
  });
  const samples: { h2: Sample[]; http1: Sample[] } = { h2: [], http1: [] };
  for (let run = 0; run < runs; run++) {
    // Taken in turns, so that a busy moment of the machine hits both.
    for (const protocol of ["h2", "http1"] as const) {
      const child = fork(new URL(import.meta.url).pathname, ["client", config, protocol], {
        execArgv: [...process.execArgv, "--expose-gc", "--max-semi-space-size=2"],
      });
      let version = 1;
      const sample = new Promise<Sample>((resolve, reject) => {
        child.on("exit", (code) => reject(new Error(`the client ended with ${code}`)));
        child.on("message", (message: Sample | "events") => {
          if (message !== "events") return resolve(message);
          version++;
          const event = {
            type: "ADDED",
            object: { ...object, metadata: { ...object.metadata, resourceVersion: `${version}` } },
          };
          const line = `${JSON.stringify(version === 2 ? event : { ...event, type: "MODIFIED" })}\n`;
          for (const reply of open) reply.write(line);
        });
      });
      samples[protocol].push(await sample);
      child.removeAllListeners("exit");
      child.kill();
      await once(child, "exit");
    }
  }
  await server[Symbol.asyncDispose]();
  authority.remove();
  const median = (protocol: keyof typeof samples, field: keyof Sample): number =>
    quantile(
      samples[protocol].map((sample) => sample[field]),
      0.5,
    );
  const fields = ["perSecond", "oneByOneMs", "watchMb", "cpuMsPer1000Events"] as const;
  const report = (protocol: keyof typeof samples) =>
    Object.fromEntries(fields.map((field) => [field, rounded(median(protocol, field), 2)]));
  const ratios = Object.fromEntries(
    fields.map((field) => [field, rounded(median("http1", field) / median("h2", field), 2)]),
  );
  console.log(
    JSON.stringify({ bench: "api-client", runs, watches, h2: report("h2"), http1: report("http1"), http1ToH2: ratios }),
  );
}

async function beClient(): Promise<void> {
  const access = await parseKubeconfig(kubeconfig, "kubeconfig");
  const limits = { qps: 1e9, burst: 1e9 };
  const environment = flags[0] === "http1" ? { DISABLE_HTTP2: "1" } : {};
  const clients = new KubeClients(
    access,
    { userAgent: "bench", main: limits, events: limits, heartbeatTimeoutMs: 10_000 },
    { clock: systemClock, log: silentLogger, environment },
  );
  const get = () => clients.main.get(resources.configMaps, { namespace: "ns", name: "a" }, {}, never);
  for (let count = 0; count < 200; count++) await get();

  let begun = systemClock.monotonic();
  for (let count = 0; count < requests / 4; count++) await get();
  const oneByOneMs = (systemClock.monotonic() - begun) / (requests / 4);

  begun = systemClock.monotonic();
  let left = requests;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await get();
  };
  await Promise.all(Array.from({ length: inParallel }, worker));
  const perSecond = requests / ((systemClock.monotonic() - begun) / 1_000);

  const before = anonymousMb();
  const scope = new TaskScope();
  let told = 0;
  const informers = Array.from({ length: watches }, () => {
    const informer = new Informer<ConfigMap>(
      { resource: resources.configMaps, namespace: "ns", keep: withoutManagedFields },
      { client: clients.main, clock: systemClock, log: silentLogger, random: Math.random },
    );
    informer.onChange(() => told++);
    scope.spawn("informer", (signal) => informer.run(signal));
    return informer;
  });
  await Promise.all(informers.map((informer) => informer.synced(never)));
  await systemClock.sleep(500, never);
  const watchMb = anonymousMb() - before;

  const cpuBefore = process.cpuUsage();
  for (let round = 1; round <= rounds; round++) {
    process.send?.("events");
    while (told < round * watches) await systemClock.sleep(1, never);
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const cpuMsPer1000Events = (user + system) / 1_000 / ((rounds * watches) / 1_000);
  process.send?.({ perSecond, oneByOneMs, watchMb, cpuMsPer1000Events } satisfies Sample);
  await once(process, "disconnect");
}

/** What Linux counts as ours alone, after the garbage is gone. */
function anonymousMb(): number {
  for (let count = 0; count < 3; count++) globalThis.gc?.();
  const kilobytes = /^RssAnon:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return Number(kilobytes) / 1024;
}
