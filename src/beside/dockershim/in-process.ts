import { explain, LinkedSignal } from "../../ground/base/index.ts";
import type { MetricRegistry } from "../../ground/metrics/index.ts";
import type { ShimProcess } from "./command.ts";
import { ShimMetrics } from "./metrics.ts";
import { type ShimFlags, settingsOf, shimFlags } from "./options.ts";
import { type Shim, untilShimStarts } from "./shim.ts";

/** Flags of a kubelet that went with dockershim; here the shim takes them, and the agent does not see them. */
const ofShimAlone = [
  ...["container-runtime", "docker-endpoint", "experimental-dockershim-root-directory", "network-plugin"],
  ...["cni-conf-dir", "cni-bin-dir", "image-pull-progress-deadline", "streaming-bind-addr"],
];
/** Accepted because old command lines have them; the shim has no use for them. */
const unheeded = ["cni-cache-dir", "network-plugin-mtu", "non-masquerade-cidr", "docker-disable-shared-pid"];
/** Flags that are on by being there: the next word is not theirs. */
const switches = ["docker-disable-shared-pid"];

export interface SplitArguments {
  readonly shim: ShimFlags;
  /** What is left for the agent. */
  readonly agent: readonly string[];
  readonly warnings: readonly string[];
}

/** Parts a kubelet's command line; undefined when it does not ask for Docker. */
export function splitArguments(argv: readonly string[]): SplitArguments | undefined {
  const shim: Record<string, string> = {};
  const agent: string[] = [];
  const warnings: string[] = [];
  let runtime: string | undefined;
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const [, given, equals, value] = /^--([^=]+)(=?)(.*)$/s.exec(word) ?? [];
    const name = given?.replaceAll("_", "-") ?? "";
    const isAlone = ofShimAlone.includes(name) || unheeded.includes(name);
    if (!isAlone && !(shimFlags as readonly string[]).includes(name)) {
      agent.push(word);
      continue;
    }
    const text = equals === "=" ? (value ?? "") : switches.includes(name) ? "true" : (rest.shift() ?? "");
    if (name === "container-runtime") runtime = text;
    else if (!unheeded.includes(name)) shim[name] = text;
    if (isAlone) warnings.push(`Flag --${name} has been deprecated, will be removed along with dockershim.`);
    // The endpoint is added in the end, as the shim has it.
    else if (name !== "container-runtime-endpoint") agent.push(`--${name}=${text}`);
  }
  return runtime === "docker" ? { shim, agent, warnings } : undefined;
}

/** Runs an agent with the shim in the same process: the agent speaks CRI to it, as to any runtime. */
export async function runWithShim(
  { shim: flags, agent, warnings }: SplitArguments,
  process: ShimProcess,
  stop: AbortSignal,
  runAgent: (argv: readonly string[], stop: AbortSignal, figures: MetricRegistry) => Promise<number>,
): Promise<number> {
  const log = process.logWriter.logger("dockershim");
  for (const warning of warnings) process.logWriter.plain(`${warning}\n`);
  const settings = settingsOf(flags);
  if ("problem" in settings) {
    log.error("command failed", new Error(settings.problem));
    return 1;
  }
  log.warn("Using dockershim is deprecated, please consider using a full-fledged CRI implementation");
  using ending = new LinkedSignal(stop);
  const metrics = new ShimMetrics(process.clock);
  let failure: unknown;
  const fail = (reason: unknown): void => {
    failure = reason;
    ending.abort(reason);
  };
  // The agent waits for its runtime in the open; so does this for Docker.
  const starting: Promise<Shim | undefined> = untilShimStarts(
    settings,
    { clock: process.clock, log, env: process.env, metrics },
    ending.signal,
  ).then(
    (shim) => {
      void shim.failed.then((reason) => (ending.signal.aborted ? undefined : fail(reason)));
      return shim;
    },
    (error: unknown) => {
      if (!ending.signal.aborted) fail(error);
      return undefined;
    },
  );
  const argv = [...agent, `--container-runtime-endpoint=${settings.endpoint}`];
  const code = await runAgent(argv, ending.signal, metrics.registry);
  ending.abort(new DOMException("the agent has ended", "AbortError"));
  await (await starting)?.[Symbol.asyncDispose]();
  if (failure === undefined) return code;
  log.error("command failed", new Error(explain(failure), { cause: failure }));
  return 1;
}
