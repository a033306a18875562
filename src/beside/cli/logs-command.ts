import { mapAtMost } from "../../ground/base/index.ts";
import { isJson } from "./answer.ts";
import { defineCommand } from "./define-command.ts";
import { type CommandIo, UsageError, writeThrough } from "./io.ts";
import type { InContainer, LocalClient } from "./local-client.ts";
import { logLineJson, logLines, prefixOf, VisibleStream } from "./log-text.ts";
import { podRef } from "./pod-ref.ts";
import type { CommandCall } from "./read-words.ts";
import { askAgent } from "./running-agent.ts";
import { logsDescription } from "./table/pod-commands.ts";
import { visible } from "./visible-text.ts";
import { allContainers, whichContainer } from "./which-container.ts";

type LogOptions = CommandCall<(typeof logsDescription)["options"]>["options"];

/** Each is a connection of its own; pods with more are no pods of people. */
const mostFollowed = 20;

/** What containers have written. */
export const logsCommand = defineCommand(logsDescription, async ({ options, operands: [ref = ""] }, io) => {
  const query = queryOf(options);
  await askAgent(io, options, async (client) => {
    const pod = await client.pod(podRef(ref, options.namespace), io.signal);
    const wanted = options["all-containers"] ? allContainers(pod) : [whichContainer(pod, options.container, io)];
    const show = (where: InContainer): Promise<void> => showLog(client, where, query, options, io);
    // What is over is shown one after the other, what goes on side by side.
    if (options.follow && wanted.length > mostFollowed) {
      throw new UsageError(`no more than ${mostFollowed} containers can be followed, found ${wanted.length}`);
    }
    if (options.follow) await mapAtMost(mostFollowed, wanted, show);
    else for (const where of wanted) await show(where);
  });
  return 0;
});

function queryOf(options: LogOptions): URLSearchParams {
  if (options["all-containers"] && options.container !== undefined) {
    throw new UsageError("--all-containers and --container: name only one of them");
  }
  const query = new URLSearchParams();
  for (const name of ["follow", "previous"] as const) if (options[name]) query.set(name, "true");
  if (options.timestamps || isJson(options)) query.set("timestamps", "true");
  if (options.tail !== undefined) query.set("tailLines", String(options.tail));
  if (options["limit-bytes"] !== undefined) query.set("limitBytes", String(options["limit-bytes"]));
  // The agent counts whole seconds, from one on.
  if (options.since !== undefined) query.set("sinceSeconds", String(Math.max(1, Math.ceil(options.since / 1000))));
  const from = options["since-time"];
  if (from === undefined) return query;
  if (options.since !== undefined) throw new UsageError("--since and --since-time: name only one of them");
  const at = Date.parse(from);
  if (Number.isNaN(at)) throw new UsageError(`--since-time wants a time such as 2026-11-17T09:00:00Z, found "${from}"`);
  query.set("sinceTime", new Date(at).toISOString());
  return query;
}

async function showLog(
  client: LocalClient,
  where: InContainer,
  query: URLSearchParams,
  options: LogOptions,
  io: CommandIo,
): Promise<void> {
  const isShown = io.isTTY && !options.raw;
  const chunks = client.logs(where, query, io.signal);
  if (isJson(options)) {
    for await (const line of logLines(chunks)) await writeThrough(io.stdout, logLineJson(where, line));
  } else if (options.prefix || options["all-containers"]) {
    // Whole lines, so that those of several containers do not run into each other.
    const prefix = options.prefix ? prefixOf(where) : "";
    for await (const { bytes } of logLines(chunks)) {
      const line = Buffer.concat([Buffer.from(prefix), bytes, Buffer.from("\n")]);
      await writeThrough(io.stdout, isShown ? visible(line.toString().replace(/\r\n$/, "\n")) : line);
    }
  } else if (isShown) {
    const stream = new VisibleStream();
    for await (const chunk of chunks) await writeThrough(io.stdout, stream.show(chunk));
    await writeThrough(io.stdout, stream.end());
  } else {
    for await (const chunk of chunks) await writeThrough(io.stdout, chunk);
  }
}
