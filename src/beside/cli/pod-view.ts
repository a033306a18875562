import type { PodViewChange } from "../../ground/model/index.ts";
import type { CommandIo } from "./io.ts";
import { PodLines } from "./pod-lines.ts";
import { type PodSummary, summarize } from "./pod-summary.ts";
import { drawOver, fitRows, renderTable } from "./pod-table.ts";

/** Keeps the pods' latest state and shows it: a table drawn in place for a person, lines for everything else. */
export class PodView {
  readonly #pods = new Map<string, PodSummary>();
  readonly #lines = new PodLines();
  readonly #io: CommandIo;
  #drawn = 0;

  constructor(io: CommandIo) {
    this.#io = io;
  }

  get pods(): readonly PodSummary[] {
    return [...this.#pods.values()];
  }

  /** Call when a watch starts: it tells all pods again, and those it does not tell are gone. */
  restart(): void {
    this.#pods.clear();
  }

  apply({ type, object }: PodViewChange): void {
    const summary = summarize(object);
    const key = object.metadata?.uid ?? summary.name;
    if (type === "DELETED") this.#pods.delete(key);
    else this.#pods.set(key, summary);
    if (this.#io.isTTY) this.draw();
    else {
      const lines = type === "DELETED" ? this.#lines.remove(summary) : this.#lines.update(summary);
      for (const line of lines) this.#io.stdout.write(`${line}\n`);
    }
  }

  /** Draws the table again, for what changes by itself: ages, and the size of the terminal. */
  draw(): void {
    if (!this.#io.isTTY) return;
    const { columns, rows } = this.#io.terminal();
    const lines = fitRows(renderTable(this.pods, this.#io.clock.now(), columns), rows);
    this.#io.stdout.write(drawOver(this.#drawn, lines));
    this.#drawn = lines.length;
  }
}
