import type { Figure } from "../wire.ts";

/**
 * The last rows of figures, in memory that does not grow: 15 minutes of samples every two seconds. The first column is
 * the time. A clock that was set back begins a new series, for a chart goes one way.
 */
export class Series {
  readonly #width: number;
  readonly #rows: number;
  readonly #values: Float64Array;
  #next = 0;
  #count = 0;

  constructor(width: number, rows = 450) {
    this.#width = width;
    this.#rows = rows;
    this.#values = new Float64Array(width * rows);
  }

  push(row: readonly Figure[]): void {
    const last = this.#values[((this.#next + this.#rows - 1) % this.#rows) * this.#width] ?? 0;
    if (this.#count > 0 && (row[0] ?? 0) < last) this.#count = 0;
    for (let column = 0; column < this.#width; column++) {
      this.#values[this.#next * this.#width + column] = row[column] ?? Number.NaN;
    }
    this.#next = (this.#next + 1) % this.#rows;
    this.#count = Math.min(this.#count + 1, this.#rows);
  }

  /** The oldest first. */
  rows(): (readonly Figure[])[] {
    return Array.from({ length: this.#count }, (_, index) => {
      const row = (this.#next - this.#count + index + this.#rows) % this.#rows;
      const from = row * this.#width;
      return Array.from(this.#values.subarray(from, from + this.#width), figureOf);
    });
  }
}

/** JSON has no word for "not a number". */
export function figureOf(value: number | undefined): Figure {
  return value === undefined || Number.isNaN(value) ? null : value;
}
