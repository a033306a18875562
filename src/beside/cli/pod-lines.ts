import type { PodSummary } from "./pod-summary.ts";

/** Tells pods line by line, for logs and pipes: only what differs from what was said before. */
export class PodLines {
  readonly #said = new Map<string, string>();

  /** The lines for a pod's new state. */
  update(pod: PodSummary): readonly string[] {
    const lines: string[] = [];
    for (const { name, kind, state, restarts } of pod.containers) {
      const times = restarts > 0 ? `, restarted ${restarts} times` : "";
      const note = kind === "main" ? "" : ` (${kind})`;
      this.#say(`${pod.name}/${name}`, `  ${pod.name}: container ${name}${note} ${state}${times}`, lines);
    }
    const address = pod.ip === "" ? "" : `, ip ${pod.ip}`;
    this.#say(pod.name, `${pod.name}: ${pod.status}, ${pod.ready}/${pod.wanted} ready${address}`, lines);
    return lines;
  }

  remove(pod: PodSummary): readonly string[] {
    for (const key of [...this.#said.keys()]) {
      if (key === pod.name || key.startsWith(`${pod.name}/`)) this.#said.delete(key);
    }
    return [`${pod.name}: gone`];
  }

  #say(key: string, line: string, lines: string[]): void {
    if (this.#said.get(key) === line) return;
    this.#said.set(key, line);
    lines.push(line);
  }
}
