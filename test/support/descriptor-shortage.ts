// Run by tests, in a process of its own with a low limit of open files: how programs fail when there are no descriptors.
import { closeSync, openSync } from "node:fs";
import { inOwnProcess, never, runToEnd } from "../../src/ground/base/index.ts";

const left = Number(process.argv[2]);
const problems: string[] = [];
process.on("uncaughtException", (error) => problems.push(`uncaught: ${error.message}`));
process.on("unhandledRejection", (error) => problems.push(`unhandled: ${String(error)}`));

/** Takes all descriptors but a few, for as long as `work` lasts. */
async function withFew(work: () => Promise<unknown>): Promise<string> {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync("/dev/null", "r"));
  } catch {
    for (const descriptor of taken.splice(0, left)) closeSync(descriptor);
  }
  try {
    await work();
    return "done";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    for (const descriptor of taken) closeSync(descriptor);
  }
}

const limits = { timeMs: 50_000, heapMb: 64 };
// Loads what starting a process needs, which takes descriptors of its own.
await runToEnd({ program: "true", args: [] }, never);
const program = await withFew(() => runToEnd({ program: "true", args: [] }, never));
const own = await withFew(() => inOwnProcess(new URL("file:///nowhere.mjs"), {}, limits));
// An error that nobody caught would come with the next turn.
await new Promise((resolve) => setTimeout(resolve, 50));
process.stdout.write(`${JSON.stringify({ program, own, problems })}\n`, () => process.exit(0));
