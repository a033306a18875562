import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { maxManifestBytes } from "../../ground/model/index.ts";
import { printAnswer } from "./answer.ts";
import { type ApplyAnswer, applyText } from "./apply-text.ts";
import { pathFrom } from "./command.ts";
import { defineCommand } from "./define-command.ts";
import { UsageError } from "./io.ts";
import { askAgent } from "./running-agent.ts";
import { applyDescription } from "./table/apply-command.ts";
import { unreadable } from "./unreadable.ts";

/** What would happen with a pod manifest on this node. */
export const applyCommand = defineCommand(applyDescription, async ({ options, operands: [operand = ""] }, io) => {
  if (!options["dry-run"]) {
    throw new UsageError(
      "it applies nothing: put the file into the directory of manifests (staticPodPath), or use kubectl apply; with --dry-run it says what would happen",
    );
  }
  const path = pathFrom(io, operand);
  const manifest = await readManifest(path);
  const question = `/plans/apply?name=${encodeURIComponent(basename(path))}`;
  const text = await askAgent(io, options, (client) => client.post(question, manifest, io.signal));
  const answer = JSON.parse(text) as ApplyAnswer;
  if (options.output === "yaml" && !options.json) {
    io.stdout.write((await import("./yaml-answer.ts")).yamlAnswer("ManifestPlan", answer));
  } else printAnswer(io, options, "ManifestPlan", answer, () => applyText(answer, io.clock.now()));
  return exitCodes[answer.outcome] ?? 1;
});

const exitCodes: Readonly<Record<ApplyAnswer["outcome"], number>> = {
  admitted: 0,
  unchanged: 0,
  refused: 1,
  invalid: 1,
  "no pod": 1,
  waits: 3,
};

/** The agent takes no more than that, and a device has no end. */
async function readManifest(path: string): Promise<Uint8Array> {
  try {
    const found = await stat(path);
    if (found.size > maxManifestBytes) throw new Error(`${path} is larger than ${maxManifestBytes / 1024 / 1024} MiB`);
    if (!found.isFile() && !found.isDirectory()) throw new Error(`${path} is not a file`);
    return await readFile(path);
  } catch (error) {
    throw unreadable(error, path);
  }
}
