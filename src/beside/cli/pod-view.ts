import { type PodSummary, type PodViewChange, summarize } from "../../ground/model/index.ts";
import type { CommandIo } from "./io.ts";
import { PodLines } from "./pod-lines.ts";
import { clipLine, drawOver, fitRows, type PodNaming, renderTable, type TableExtent } from "./pod-table.ts";
import { type PullAnswer, progressText } from "./pull-text.ts";
import { visibleLine } from "./visible-text.ts";

/** Keeps the pods' latest state and shows it: a table drawn in place for a person, lines for everything else. */
export class PodView {
  readonly #pods = new Map<string, PodSummary>();
  readonly #lines: PodLines;
  readonly #naming: PodNaming;
  readonly #extent: TableExtent;
  readonly #io: CommandIo;
  #pulls: readonly PullAnswer[] = [];
  #drawn = 0;

  constructor(io: CommandIo, naming: PodNaming = "plain", extent: TableExtent = "usual") {
    this.#io = io;
    this.#naming = naming;
    this.#extent = extent;
    this.#lines = new PodLines(naming);
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

  /** Whether something of it may be waiting for an image. */
  get mayPull(): boolean {
    return this.pods.some(({ settled, failed }) => !settled && !failed);
  }

  /** What is known of pulls now; shown with the next drawing. */
  showPulls(pulls: readonly PullAnswer[]): void {
    this.#pulls = pulls;
  }

  /** Draws the table again, for what changes by itself: ages, and the size of the terminal. */
  draw(): void {
    if (!this.#io.isTTY) return;
    const { columns, rows } = this.#io.terminal();
    const table = renderTable(this.pods, this.#io.clock.now(), columns, this.#naming, this.#extent);
    const pulling = this.#pulls.flatMap(({ image, progress }) =>
      progress === undefined ? [] : [clipLine(visibleLine(`pulling ${image}: ${progressText(progress)}`), columns)],
    );
    const lines = fitRows([...table, ...pulling], rows);
    this.#io.stdout.write(drawOver(this.#drawn, lines));
    this.#drawn = lines.length;
  }
}
