import { seededRandom } from "../../support/seeded-random.ts";

/** Chance that comes from the seed. Each part has dice of its own, so that one more throw here changes nothing there. */
export class Dice {
  readonly #random: () => number;

  constructor(seed: number, part: string) {
    let mixed = seed | 0;
    for (let index = 0; index < part.length; index++) mixed = Math.imul(mixed ^ part.charCodeAt(index), 0x01000193);
    this.#random = seededRandom(mixed >>> 0);
  }

  readonly number = (): number => this.#random();

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  between(low: number, high: number): number {
    return low + this.#random() * (high - low);
  }

  whole(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }

  pick<Item>(items: readonly Item[]): Item {
    if (items.length === 0) throw new Error("there is nothing to pick from");
    return items[Math.floor(this.#random() * items.length)] as Item;
  }

  /** Times between events that come by chance, `mean` apart on average. */
  interval(mean: number): number {
    return -Math.log(1 - this.#random()) * mean;
  }

  hex(length: number): string {
    let text = "";
    while (text.length < length)
      text += Math.floor(this.#random() * 2 ** 32)
        .toString(16)
        .padStart(8, "0");
    return text.slice(0, length);
  }
}
