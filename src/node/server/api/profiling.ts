import type { Clock } from "../../../ground/base/index.ts";
import { untilClientLeaves } from "../http.ts";
import { AnswerError } from "./answer-error.ts";
import type { ApiCall, ApiMount } from "./router.ts";

export interface ProfilingPorts {
  readonly clock: Clock;
  /** The words the agent was started with. */
  readonly commandLine: readonly string[];
}

const defaultSeconds = 30;
const longestSeconds = 3600;

/**
 * /debug/pprof/: profiles of this process in the formats of its own engine: `profile` for the CPU (open it in
 * Chrome's developer tools or with speedscope), `heap` for the memory.
 */
export function profilingService(ports: ProfilingPorts): ApiMount {
  let measuring = false;
  const handle = async (call: ApiCall): Promise<void> => {
    const name = call.params["name"] ?? "";
    switch (name.replace(/\/$/, "")) {
      case "cmdline":
        call.response.writeHead(200, { "Content-Type": "text/plain; charset=utf-8" });
        call.response.end(ports.commandLine.join("\0"));
        return;
      case "heap":
        return await sendHeap(call);
      case "profile": {
        if (measuring) {
          throw new AnswerError(500, "Could not enable CPU profiling: cpu profiling already in use\n");
        }
        measuring = true;
        try {
          return await sendProfile(call, ports.clock);
        } finally {
          measuring = false;
        }
      }
      default:
        throw new AnswerError(404, "Unknown profile; there are cmdline, heap and profile\n");
    }
  };
  return { type: "service", path: "/debug/pprof/", routes: [{ methods: ["GET"], pattern: "{name*}", handle }] };
}

async function sendProfile({ query, response }: ApiCall, clock: Clock): Promise<void> {
  const seconds = Number(query.get("seconds") ?? defaultSeconds);
  if (!(seconds > 0 && seconds <= longestSeconds)) {
    throw new AnswerError(400, `seconds must be a number above 0 and at most ${longestSeconds}\n`);
  }
  const { Session } = await import("node:inspector/promises");
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    const signal = untilClientLeaves(response);
    await clock.sleep(seconds * 1000, signal).catch(() => {});
    const { profile } = await session.post("Profiler.stop");
    if (signal.aborted) return;
    const body = JSON.stringify(profile);
    response.writeHead(200, {
      "Content-Type": "application/json",
      "Content-Disposition": 'attachment; filename="nodelet.cpuprofile"',
      "Content-Length": Buffer.byteLength(body),
    });
    response.end(body);
  } finally {
    session.disconnect();
  }
}

async function sendHeap({ response }: ApiCall): Promise<void> {
  const [{ getHeapSnapshot }, { pipeline }] = await Promise.all([import("node:v8"), import("node:stream/promises")]);
  response.writeHead(200, {
    "Content-Type": "application/json",
    "Content-Disposition": 'attachment; filename="nodelet.heapsnapshot"',
  });
  // A client that leaves in the middle only ends its own download.
  await pipeline(getHeapSnapshot(), response).catch(() => {});
}
