import { type Clock, TaskScope } from "../../ground/base/index.ts";
import { type Pod, type PodSummary, summarize } from "../../ground/model/index.ts";
import { isJson, jsonAnswer, printAnswer } from "./answer.ts";
import { defineCommand } from "./define-command.ts";
import { type CommandIo, writeThrough } from "./io.ts";
import type { LocalClient } from "./local-client.ts";
import { isIn, podRef } from "./pod-ref.ts";
import { renderTable, type TableExtent } from "./pod-table.ts";
import { PodView } from "./pod-view.ts";
import { askAgent } from "./running-agent.ts";
import type { OptionValues } from "./table/description.ts";
import { podsDescription } from "./table/pod-commands.ts";

/** The pods of this node as the agent sees them. */
export const podsCommand = defineCommand(podsDescription, async ({ options, operands: [ref] }, io) => {
  await askAgent(io, options, async (client) => {
    const { namespace } = options;
    const pods =
      ref === undefined
        ? (await client.pods(io.signal)).filter(({ metadata }) => isIn(namespace, metadata))
        : [await client.pod(podRef(ref, namespace), io.signal)];
    if (options.watch) {
      const uids = ref === undefined ? undefined : pods.map(({ metadata }) => metadata?.uid);
      const isWanted = ({ metadata }: Pod): boolean =>
        isIn(namespace, metadata) && (uids === undefined || uids.includes(metadata?.uid));
      return await watch(client, isWanted, await sayChange(options), io, extentOf(options));
    }
    const items = pods.map(summarize);
    if (isYaml(options)) io.stdout.write((await loadYaml())("PodList", { items }));
    else printAnswer(io, options, "PodList", { items }, () => `${table(items, io, extentOf(options)).join("\n")}\n`);
  });
  return 0;
});

/** Pipes get whole lines, however long; a terminal has its width. */
function table(items: readonly PodSummary[], { isTTY, terminal, clock }: CommandIo, extent: TableExtent) {
  const columns = isTTY ? terminal().columns : Number.POSITIVE_INFINITY;
  return renderTable(items, clock.now(), columns, "by namespace", extent);
}

type PodsOptions = OptionValues<typeof podsDescription.options>;

function extentOf({ output }: PodsOptions): TableExtent {
  return output === "wide" ? "wide" : "usual";
}

function isYaml(options: PodsOptions): boolean {
  return options.output === "yaml" && !options.json;
}

/** Few want it. */
async function loadYaml() {
  return (await import("./yaml-answer.ts")).yamlAnswer;
}

type SayChange = (change: object) => string;

/** How programs are told of a change; undefined: a person is. */
async function sayChange(options: PodsOptions): Promise<SayChange | undefined> {
  if (isJson(options)) return (change) => jsonAnswer("PodChange", change, 0);
  if (!isYaml(options)) return undefined;
  const yamlAnswer = await loadYaml();
  return (change) => `---\n${yamlAnswer("PodChange", change)}`;
}

/** Shows changes until Ctrl-C; an agent that ends leaves the last of them, and a word about it. */
async function watch(
  client: LocalClient,
  isWanted: (pod: Pod) => boolean,
  say: SayChange | undefined,
  io: CommandIo,
  extent: TableExtent,
): Promise<void> {
  const view = new PodView(io, "by namespace", extent);
  await using scope = new TaskScope(io.signal);
  // Ages change by themselves, and so does the size of the terminal.
  if (say === undefined) scope.spawn("redraw", (signal) => redraw(view, io.clock, signal));
  for await (const change of client.watchPods(scope.signal)) {
    if (!isWanted(change.object)) continue;
    const { type } = change;
    if (say === undefined) view.apply(change);
    else await writeThrough(io.stdout, say({ type, item: summarize(change.object) }));
  }
  io.signal.throwIfAborted();
  throw new Error("the agent has ended, or was restarted; what is shown is the last that it said");
}

async function redraw(view: PodView, clock: Clock, signal: AbortSignal): Promise<void> {
  for (;;) {
    view.draw();
    await clock.sleep(1000, signal);
  }
}
