import { spawn } from "node:child_process";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Readable, Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { type Clock, messageOf, runProgram, withDeadline } from "../../../ground/base/index.ts";
import { untilClientLeaves } from "../http.ts";
import { AnswerError } from "./answer-error.ts";
import { copyRange, pass } from "./copy-range.ts";
import { findBelow } from "./find-below.ts";
import { parseLogQuery, type ServiceQuery } from "./log-query-options.ts";
import type { ApiCall } from "./router.ts";
import type { LogQuery } from "./system-logs.ts";

const deadlineMs = 30_000;

export interface LogQueryPorts {
  readonly clock: Clock;
  /** /var/log. */
  readonly root: string;
  readonly journalctl: string;
}

/** Answers what `kubectl get --raw "/api/v1/nodes/N/proxy/logs/?query=kubelet"` asks. */
export function logQuery(ports: LogQueryPorts): LogQuery {
  return (call) => {
    const query = parseLogQuery(call.query);
    return query === undefined ? undefined : answer(call, query, ports);
  };
}

async function answer(call: ApiCall, query: ServiceQuery, ports: LogQueryPorts): Promise<void> {
  if ((call.params["path"] ?? "") !== "") throw new AnswerError(406, "path not allowed in query mode");
  if (query.file !== undefined) await requireFile(ports.root, query.file);
  const leaving = untilClientLeaves(call.response);
  if (leaving.aborted) return;
  const output = startOutput(call);
  try {
    const late = (): Error => new Error("deadline exceeded");
    await withDeadline(ports.clock, deadlineMs, late, leaving, async (signal) => {
      if (query.file !== undefined) await copyFile(ports.root, query.file, output, signal);
      else await copyServices(query, output, ports, signal);
    });
  } catch (error) {
    if (!leaving.aborted) output.write(`\nerror: ${messageOf(error)}\n`);
  }
  if (leaving.aborted) return void output.destroy();
  output.end();
  await finished(call.response).catch(() => {});
  output.destroy();
}

function startOutput({ request, response }: ApiCall): Writable {
  const headers = { "Content-Type": "text/plain;charset=UTF-8" };
  if (request.headers["accept-encoding"] !== "gzip") return started(response, headers);
  const gzip = createGzip();
  // What is given up while it packs has nobody to complain to.
  gzip.on("error", () => response.destroy());
  gzip.pipe(started(response, { ...headers, "Content-Encoding": "gzip" }));
  return gzip;
}

function started(response: ServerResponse, headers: Record<string, string>): ServerResponse {
  return response.writeHead(200, headers);
}

async function requireFile(root: string, file: string): Promise<void> {
  try {
    await using found = await findBelow(root, file);
    if (found.type === "file") return;
  } catch (error) {
    if (!(error instanceof AnswerError)) throw error;
  }
  throw new AnswerError(406, `file ${JSON.stringify(file)} not found in the log directory`);
}

async function copyFile(root: string, file: string, output: Writable, signal: AbortSignal): Promise<void> {
  await using found = await findBelow(root, file);
  if (found.type !== "file") return;
  await copyRange(found.handle, { start: 0, end: Number.POSITIVE_INFINITY }, output, signal);
}

async function copyServices(
  query: ServiceQuery,
  output: Writable,
  ports: LogQueryPorts,
  signal: AbortSignal,
): Promise<void> {
  const known = await journalUnits(ports, signal);
  const native = query.services.filter((service) => known.has(`${service}.service`) || known.has(service));
  const others = query.services.filter((service) => !native.includes(service));
  if (native.length > 0) await runJournal({ ...query, services: native }, output, ports, signal);
  if (others.length === 0) return;
  if (query.hasOptions) {
    const names = others.join(" ");
    output.write(`options present and query resolved to log files for [${names}] try without specifying options\n`);
    return;
  }
  for (const service of others) await copyServiceFile(service, output, ports.root, signal);
}

async function copyServiceFile(service: string, output: Writable, root: string, signal: AbortSignal): Promise<void> {
  for (const file of [service, `${service}.log`, `${service}/${service}.log`]) {
    try {
      await requireFile(root, file);
    } catch {
      continue;
    }
    return await copyFile(root, file, output, signal);
  }
  output.write(`log not found for ${service}\n`);
}

async function journalUnits(ports: LogQueryPorts, signal: AbortSignal): Promise<ReadonlySet<string>> {
  try {
    const text = await runProgram(
      { program: ports.journalctl, args: ["--field", "_SYSTEMD_UNIT"], env: {}, input: "" },
      ports.clock,
      signal,
    );
    return new Set(text.split("\n"));
  } catch {
    return new Set();
  }
}

/** Runs journalctl and passes on what it prints; there is no shell between us. */
async function runJournal(
  query: ServiceQuery,
  output: Writable,
  ports: LogQueryPorts,
  signal: AbortSignal,
): Promise<void> {
  const child = spawn(ports.journalctl, journalArguments(query), {
    stdio: ["ignore", "pipe", "pipe"],
    signal,
    killSignal: "SIGKILL",
  });
  const failed = once(child, "error").then(([error]) => {
    throw new Error(`journal output not available: ${messageOf(error)}`);
  });
  await Promise.race([
    Promise.all([copy(child.stdout, output, signal), copy(child.stderr, output, signal), once(child, "close")]),
    failed,
  ]);
}

export function journalArguments(query: ServiceQuery): readonly string[] {
  const args = ["--utc", "--no-pager", "--output=short-precise"];
  if (query.sinceTime !== undefined) args.push(`--since=${journalTime(query.sinceTime)}`);
  if (query.untilTime !== undefined) args.push(`--until=${journalTime(query.untilTime)}`);
  if (query.tailLines !== undefined) args.push("--pager-end", `--lines=${query.tailLines}`);
  for (const service of query.services) args.push(`--unit=${service}`);
  if (query.pattern !== undefined) args.push(`--grep=${query.pattern}`);
  if (query.boot !== undefined) args.push("--boot", String(query.boot));
  return args;
}

/** UTC, as --utc makes journalctl read it. */
function journalTime(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

async function copy(from: Readable, to: Writable, signal: AbortSignal): Promise<void> {
  for await (const chunk of from) await pass(chunk, to, signal);
}
