import type { VersionId } from "./version.ts";

export const hungNoteName = "hung.json";

/** What a process that got stuck during a trial leaves to the next one. */
export interface HungNote {
  readonly version: VersionId;
  readonly why: string;
}

export function writeHungNote(note: HungNote): string {
  return `${JSON.stringify(note)}\n`;
}

/** Undefined when it is not whole: then it was a crash like any other. */
export function readHungNote(text: string): HungNote | undefined {
  try {
    const { version, why } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    return typeof version === "string" && typeof why === "string" ? { version, why } : undefined;
  } catch {
    return undefined;
  }
}
