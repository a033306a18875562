// The thread of process-starter.ts: it starts processes, and stands still while it does.
import { parentPort } from "node:worker_threads";
import { NotStartedError, type ProcessEvents, runModuleHere, runProgramHere } from "./child-processes.ts";
import { codeOf, messageOf } from "./errors.ts";
import type { ProcessJob, ProcessNews, ProcessOrder } from "./process-messages.ts";

const running = new Map<number, AbortController>();

parentPort?.on("message", (order: ProcessOrder) => {
  const { id } = order;
  if (order.type === "start") void carryOut(id, order.job);
  else {
    running.get(id)?.abort();
    tell({ id, type: "told to end" });
  }
});

tell({ type: "ready" });

async function carryOut(id: number, job: ProcessJob): Promise<void> {
  const cancel = new AbortController();
  running.set(id, cancel);
  const events: ProcessEvents = {
    begun: () => tell({ id, type: "begun" }),
    message: (message) => tell({ id, type: "message", message }),
    gone: () => tell({ id, type: "gone" }),
  };
  try {
    const { signal } = cancel;
    const result =
      job.type === "program" ? await runProgramHere(job, events, signal) : await runModuleHere(job, events, signal);
    tell({ id, type: "result", result });
  } catch (error) {
    const isStarted = !(error instanceof NotStartedError);
    const failure = { message: messageOf(error), code: codeOf(isStarted ? error : error.cause) };
    tell({ id, type: isStarted ? "failure" : "not started", failure });
  } finally {
    running.delete(id);
  }
}

function tell(news: ProcessNews): void {
  parentPort?.postMessage(news);
}
