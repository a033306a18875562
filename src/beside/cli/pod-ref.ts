import { UsageError } from "./io.ts";
import { visibleLine } from "./visible-text.ts";

/** A pod as the agent is asked for it, by the word and by the namespace of --namespace. */
export function podRef(word: string, namespace: string | undefined): string {
  if (namespace === undefined || word.startsWith(`${namespace}/`)) return word;
  if (!word.includes("/")) return `${namespace}/${word}`;
  throw new UsageError(`${visibleLine(word)} is not in the namespace ${visibleLine(namespace)}; name only one of them`);
}

/** Whether a pod is wanted: any, unless a namespace is named. */
export function isIn(
  namespace: string | undefined,
  pod: { readonly namespace?: string | undefined } | undefined,
): boolean {
  return namespace === undefined || (pod?.namespace ?? "default") === namespace;
}
