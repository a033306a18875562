import type { CommandIo } from "./io.ts";
import { visible, visibleJson } from "./visible-text.ts";

/** How the user wants an answer: outputOptions, once they are read. */
export interface WantedOutput {
  readonly output: "text" | "json";
  readonly json: boolean;
}

/** What programs read is versioned; fields are only ever added. */
export const apiVersion = "nodelet.dev/v1";

/** Prints one answer in the form that the user wants. What pods say in it can't steer a terminal. */
export function printAnswer(
  io: Pick<CommandIo, "stdout">,
  wanted: { readonly output: string; readonly json: boolean },
  kind: string,
  answer: object | undefined,
  text: () => string,
): void {
  io.stdout.write(isJson(wanted) ? jsonAnswer(kind, answer, 2) : visible(text()));
}

/** An answer for programs; without an indent, in one line. */
export function jsonAnswer(kind: string, answer: object | undefined, indent: number): string {
  return `${visibleJson({ apiVersion, kind, ...answer }, indent)}\n`;
}

export function isJson({ output, json }: { readonly output: string; readonly json: boolean }): boolean {
  return json || output === "json";
}
