// Does one piece of work on files that may never answer, in a process of its own; see volume-files.ts.
import { once } from "node:events";
import process from "node:process";
import { codeOf, explain, never } from "../../../ground/base/index.ts";
import { fileJobs, type JobAnswer, type JobMessage, type JobNews } from "./file-jobs.ts";

const [message] = await once(process, "message");
const { name, input } = message as JobMessage;
const say = (answer: JobAnswer): void => void process.send?.(answer);
const run = fileJobs[name] as (input: unknown, tell: (news: JobNews) => void, signal: AbortSignal) => Promise<unknown>;
try {
  say({ result: await run(input, (news) => say({ news }), never) });
} catch (error) {
  say({
    failure: { name: error instanceof Error ? error.name : "Error", message: explain(error), code: codeOf(error) },
  });
}
process.disconnect?.();
