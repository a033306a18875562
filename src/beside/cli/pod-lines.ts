import type { PodSummary } from "../../ground/model/index.ts";
import { type PodNaming, shownName } from "./pod-table.ts";
import { visibleLine } from "./visible-text.ts";

/** Tells pods line by line, for logs and pipes: only what differs from what was said before. */
export class PodLines {
  readonly #said = new Map<string, string>();
  readonly #naming: PodNaming;

  constructor(naming: PodNaming = "plain") {
    this.#naming = naming;
  }

  /** The lines for a pod's new state. */
  update(pod: PodSummary): readonly string[] {
    const lines: string[] = [];
    const shown = shownName(pod, this.#naming);
    for (const { name, kind, state, restarts } of pod.containers) {
      const times = restarts > 0 ? `, restarted ${restarts} times` : "";
      const note = kind === "main" ? "" : ` (${kind})`;
      this.#say(`${shown} ${name}`, `  ${shown}: container ${name}${note} ${state}${times}`, lines);
    }
    const address = pod.ip === "" ? "" : `, ip ${pod.ip}`;
    this.#say(shown, `${shown}: ${pod.status}, ${pod.ready}/${pod.wanted} ready${address}`, lines);
    return lines;
  }

  remove(pod: PodSummary): readonly string[] {
    const shown = shownName(pod, this.#naming);
    for (const key of [...this.#said.keys()]) {
      if (key === shown || key.startsWith(`${shown} `)) this.#said.delete(key);
    }
    return [visibleLine(`${shown}: gone`)];
  }

  #say(key: string, line: string, lines: string[]): void {
    if (this.#said.get(key) === line) return;
    this.#said.set(key, line);
    lines.push(visibleLine(line));
  }
}
