import { deepFreeze, inOwnProcess, Limiter, lazily, loadedPart, messageOf, never } from "../base/index.ts";
import type { DecodedManifest, ManifestKinds } from "./manifest-kinds.ts";
import type { ManifestAnswer, ManifestQuestion, ReadManifest } from "./manifest-messages.ts";
import type { Problem } from "./problem.ts";

export const maxManifestBytes = 10 * 1024 * 1024;

/** Longer texts are read in a process of their own: a megabyte takes about a second. */
const longestReadHere = 16 * 1024;
const processLimits = { timeMs: 60_000, heapMb: 1024 };
/** Each takes a core while it lasts. */
const processes = new Limiter(2);
const decoding = lazily(() => loadedPart(import("./manifest-decode.ts")));

/** Reads one object from YAML or JSON. Never throws: whatever is wrong is in `problems`, each with its position. */
export async function decodeManifest<Kind extends keyof ManifestKinds>(
  text: string,
  kinds: readonly [Kind, ...Kind[]],
): Promise<DecodedManifest<Kind>> {
  if (text.length <= longestReadHere) {
    const { decodeText } = await decoding();
    return decodeText(text, kinds);
  }
  try {
    const decoded = await askProcess<ReadManifest<Kind>>({ read: "manifest", text, kinds });
    // Positions of what is found wrong later are left out: the tree that knows them stayed in the other process.
    return { ...deepFreeze(decoded), locate: () => undefined };
  } catch (error) {
    return { object: undefined, problems: [unreadable(error)], locate: () => undefined };
  }
}

/** Plain data of a YAML text's first document, as JSON would have it; throws what is wrong with the text. */
export async function decodeYaml(text: string): Promise<unknown> {
  const { plainValue } = await decoding();
  return text.length <= longestReadHere ? plainValue(text) : await askProcess<unknown>({ read: "plain", text });
}

async function askProcess<Answer>(input: ManifestQuestion): Promise<Answer> {
  // As TypeScript beside this file, or beside the bundle.
  const entry = new URL(
    import.meta.url.endsWith(".ts") ? "./manifest-process.ts" : "./manifest-process.mjs",
    import.meta.url,
  );
  const ask = (): Promise<ManifestAnswer> => inOwnProcess<ManifestAnswer>(entry, input, processLimits);
  const answer = await processes.run(ask, never);
  if ("failure" in answer) throw new Error(answer.failure);
  return answer.result as Answer;
}

function unreadable(error: unknown): Problem {
  return { severity: "error", field: "", message: `Cannot read the manifest: ${messageOf(error)}` };
}
