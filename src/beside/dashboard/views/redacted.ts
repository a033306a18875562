import { isSecret, redactText } from "../../../ground/base/index.ts";
import type { Pod } from "../../../ground/model/index.ts";

/** What stands where something secret was. */
export const hidden = "<hidden>";

const secretWords = "passw|passphrase|secret|token|credential|api[-_]?key|private[-_]?key|access[-_]?key";
const secretName = new RegExp(
  `${secretWords}|(?:^|[-_])(?:pwd|auth|cookie|jwt|dsn|pat|salt|webhook)(?:$|[-_\\d])|pass(?:$|[-_\\d])|authorization|key(?:$|[-_\\d])|connection[-_]?string`,
  "i",
);
const secretAnnotation = new RegExp(`last-applied|${secretWords}`, "i");
const secretWord = new RegExp(secretWords, "i");
/**
 * `--token=x`, `PGPASSWORD='x'`, `?api_key=x`, "password": "x", and the last within a text of JSON, where quotes have
 * backslashes before them. Begins with a word, so that long texts cost little.
 */
const assigned = new RegExp(
  `((?:${secretWords}|\\bpwd\\b)[\\w-]{0,32}(?:\\\\*["'])?\\s?[=:]\\s?\\\\*)("[^"]*"|'[^']*'|[^\\s"'&,;]+)`,
  "gi",
);
const written = new RegExp(`(--[\\w-]{0,32}(?:${secretWords})[\\w-]{0,32} )([^\\s-]\\S*)`, "gi");
const privateKey = /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g;
/**
 * A web token, or what only begins like one. That is taken whole as well, and left as it is: were it passed over, each
 * such beginning in it would be a new start, and a pod could have the agent read for minutes.
 */
const mayBeWebToken = /\beyJ[\w-]*(?:\.[\w-]{8,}\.[\w-]*)?/g;
const webToken = /^eyJ[\w-]{8,}\./;
/** `?api_key=x`: a probe that fails says whole addresses, and so do those who pull images. */
const askedWith = new RegExp(
  `([?&](?:[\\w.-]{0,32}(?:${secretWords})[\\w-]{0,32}|sig|(?:x-amz-)?signature)=)[^\\s"'&#]+`,
  "gi",
);
/** Of services that mark their tokens, so that such as us find them. */
const markedToken = /\b(?:gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|[prs]k_(?:live|test)_|npm_)[\w-]{10,}/g;
const postedTo = /(\bhooks\.slack\.com\/services\/)[\w/]+/g;

/** A text that may be shown: without what is secret by its form. */
function shownText(text: string): string {
  return redactText(text)
    .replace(privateKey, hidden)
    .replace(mayBeWebToken, (found) => (webToken.test(found) ? hidden : found))
    .replace(askedWith, `$1${hidden}`)
    .replace(markedToken, hidden)
    .replace(postedTo, `$1${hidden}`);
}

/** For JSON.stringify: every text that leaves for the pages. */
export function shownValue(_key: string, value: unknown): unknown {
  return typeof value === "string" ? shownText(value) : value;
}

/** Of words that a program is started with, those that may be shown. */
export function shownCommand(words: readonly string[]): string[] {
  return words.map((word, index) =>
    isSecretFlag(words[index - 1] ?? "") && !word.startsWith("-") ? hidden : withoutAssigned(word),
  );
}

/** `--db-password hunter2` as two words of a command. Two questions: one of both would take the square of the time. */
function isSecretFlag(word: string): boolean {
  return /^--?[\w-]*$/.test(word) && secretWord.test(word);
}

function withoutAssigned(text: string): string {
  return shownText(text.replace(assigned, `$1${hidden}`).replace(written, `$1${hidden}`));
}

/**
 * A pod that may be shown: without what is secret by where it came from, by its name or by its form, and without what
 * only machines read.
 */
export function redactedPod(pod: Pod): unknown {
  const { managedFields: _, ...metadata } = { managedFields: undefined, ...pod.metadata };
  return redacted({ apiVersion: "v1", kind: "Pod", ...pod, metadata }, []);
}

function redacted(value: unknown, path: readonly string[]): unknown {
  if (typeof value === "string") return redactedText(value, path);
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item === "string")) return shownCommand(value);
    return value.map((item) => redacted(item, [...path, "[]"]));
  }
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value);
  // { name, value }: variables of the environment, headers of probes, parameters.
  const named = new Map(fields).get("name");
  const hidesValue = typeof named === "string" && secretName.test(named);
  return Object.fromEntries(
    fields
      .filter(([, each]) => each !== undefined)
      .map(([name, each]) => {
        if (hidesValue && name === "value") return [name, hidden];
        if (isSecret(name, each)) return [name, hidden];
        return [name, redacted(each, [...path, name])];
      }),
  );
}

function redactedText(text: string, path: readonly string[]): string {
  const [field, key = ""] = path.slice(-2);
  // Annotations, and what drivers of storage are told of a volume.
  const isFree = field === "annotations" || field === "volumeAttributes" || field === "options";
  if (isFree && secretAnnotation.test(key)) return hidden;
  return withoutAssigned(text);
}
