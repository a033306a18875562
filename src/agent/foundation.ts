import { join, normalize } from "node:path";
import { type RuntimeConnection, RuntimeLink } from "../connections/cri/index.ts";
import type { Tracing } from "../connections/otlp/index.ts";
import { type Clock, Ledger, type Logger, noTracer, TaskScope, type Tracer } from "../ground/base/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";
import { type PodLedger, type PodStep, type PodUid, stepSpan } from "../ground/model/index.ts";
import { AgentMetrics } from "../node/metrics/index.ts";
import { HealthRegistry, MetricRegistries } from "../node/server/index.ts";
import { PodChurn, StartSlots, startSlotsFor } from "../pod/workers/index.ts";
import { Ending } from "./ending.ts";
import type { AgentInputs, Host, ProcessFacts } from "./inputs.ts";
import { Wakes } from "./wakes.ts";

/** What parts of the agent are built on. */
export interface Foundation {
  readonly config: AgentConfig;
  /** --root-dir in canonical form. */
  readonly rootDir: string;
  readonly podsDir: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly process: ProcessFacts;
  readonly host: Host;
  readonly health: HealthRegistry;
  readonly metrics: AgentMetrics;
  readonly wakes: Wakes;
  readonly link: RuntimeLink;
  readonly cri: RuntimeConnection;
  readonly ledger: PodLedger;
  readonly tracer: Tracer;
  /** Brings spans to their collector; undefined: none are wanted. */
  readonly bringTraces: Tracing["run"] | undefined;
  readonly churn: PodChurn;
  readonly ending: Ending;
  /** Owns the loops of the pods; they run from the stage of that name on. */
  readonly scope: TaskScope;
}

export function layFoundation(inputs: AgentInputs): Foundation {
  const { config, random, log, process, host } = inputs;
  const rootDir = normalize(config.flags.rootDir).replace(/(.)\/$/, "$1");
  const metrics = new AgentMetrics(new MetricRegistries(process.otherFigures), inputs.clock);
  const { clock } = metrics;
  const health = new HealthRegistry(clock);
  metrics.showHealth(health);
  const { tracer } = inputs.tracing ?? { tracer: noTracer };
  const cri = inputs.connectRuntime({ clock, onCall: metrics.runtime.onCall, tracer });
  return {
    config,
    rootDir,
    podsDir: join(rootDir, "pods"),
    clock,
    random,
    log,
    process,
    host,
    health,
    metrics,
    wakes: new Wakes(),
    cri,
    link: new RuntimeLink(config.kubelet, { cri, clock, log: log.named("cri"), health }),
    churn: new PodChurn(new StartSlots(clock, startSlotsFor(host.facts.machine.cpus.logical))),
    ledger: new Ledger<PodUid, PodStep>(clock, undefined, metrics.pods.onStep, (uid, step, subject) =>
      tracer.begin(stepSpan(uid, step, subject)),
    ),
    tracer,
    bringTraces: inputs.tracing?.run,
    ending: new Ending(),
    scope: inputs.scope ?? new TaskScope(),
  };
}
