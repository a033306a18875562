/** A list of CPUs that cannot be read. */
export class CpuSetError extends Error {
  override readonly name = "CpuSetError";
}

// No machine has more; a range to here is a typo.
const mostCpus = 65_536;
const bitsPerWord = 32;

/** A set of CPUs, by number. Never changes; reads and writes the kernel's list form ("0-3,8"). */
export class CpuSet implements Iterable<number> {
  static readonly none = new CpuSet(new Uint32Array(0));

  readonly #words: Uint32Array;
  #size: number | undefined;
  #text: string | undefined;

  private constructor(words: Uint32Array) {
    this.#words = words;
  }

  static of(cpus: Iterable<number>): CpuSet {
    const list = [...cpus];
    let largest = -1;
    for (const cpu of list) {
      if (!Number.isInteger(cpu) || cpu < 0) throw new CpuSetError(`${cpu} is not the number of a CPU`);
      if (cpu >= mostCpus) throw tooLarge(cpu);
      largest = Math.max(largest, cpu);
    }
    const words = new Uint32Array(Math.ceil((largest + 1) / bitsPerWord));
    for (const cpu of list) words[cpu >>> 5] = (words[cpu >>> 5] ?? 0) | (1 << (cpu & 31));
    return new CpuSet(words);
  }

  /** Reads a list such as "0-3,8"; blanks around it do not matter, an empty one is the empty set. */
  static parse(text: string): CpuSet {
    const trimmed = text.trim();
    if (trimmed === "") return CpuSet.none;
    const cpus = new Set<number>();
    for (const part of trimmed.split(",")) {
      const match = /^([0-9]{1,9})(?:-([0-9]{1,9}))?$/.exec(part);
      if (match === null)
        throw new CpuSetError(`${JSON.stringify(part)} is neither a CPU number nor a range such as 0-3`);
      const first = Number(match[1]);
      const last = Number(match[2] ?? match[1]);
      if (first > last) throw new CpuSetError(`invalid range ${JSON.stringify(part)} (${first} > ${last})`);
      if (last >= mostCpus) throw tooLarge(last);
      for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
    }
    return CpuSet.of(cpus);
  }

  get size(): number {
    this.#size ??= this.#words.reduce((sum, word) => sum + onesIn(word), 0);
    return this.#size;
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  has(cpu: number): boolean {
    return (((this.#words[cpu >>> 5] ?? 0) >>> (cpu & 31)) & 1) === 1;
  }

  with(other: CpuSet): CpuSet {
    return this.#combined(other, Math.max(this.#words.length, other.#words.length), (a, b) => a | b);
  }

  without(other: CpuSet): CpuSet {
    return this.#combined(other, this.#words.length, (a, b) => a & ~b);
  }

  and(other: CpuSet): CpuSet {
    return this.#combined(other, Math.min(this.#words.length, other.#words.length), (a, b) => a & b);
  }

  /** How many CPUs both have. */
  sizeOfCommon(other: CpuSet): number {
    const length = Math.min(this.#words.length, other.#words.length);
    let sum = 0;
    for (let index = 0; index < length; index++) {
      sum += onesIn((this.#words[index] ?? 0) & (other.#words[index] ?? 0));
    }
    return sum;
  }

  isWithin(other: CpuSet): boolean {
    return this.sizeOfCommon(other) === this.size;
  }

  equals(other: CpuSet): boolean {
    return this.size === other.size && this.isWithin(other);
  }

  /** In ascending order. */
  *[Symbol.iterator](): Generator<number, void, undefined> {
    for (const [index, word] of this.#words.entries()) {
      for (let rest = word; rest !== 0; rest &= rest - 1) yield index * bitsPerWord + 31 - Math.clz32(rest & -rest);
    }
  }

  toString(): string {
    this.#text ??= listForm([...this]);
    return this.#text;
  }

  #combined(other: CpuSet, length: number, combine: (a: number, b: number) => number): CpuSet {
    const words = new Uint32Array(length);
    for (let index = 0; index < length; index++) {
      words[index] = combine(this.#words[index] ?? 0, other.#words[index] ?? 0);
    }
    return new CpuSet(words);
  }
}

function tooLarge(cpu: number): CpuSetError {
  return new CpuSetError(`CPU ${cpu} is beyond the largest number supported, ${mostCpus - 1}`);
}

function listForm(cpus: readonly number[]): string {
  const parts: string[] = [];
  for (let start = 0; start < cpus.length; ) {
    let end = start;
    while (cpus[end + 1] === (cpus[end] ?? 0) + 1) end++;
    parts.push(end === start ? `${cpus[start]}` : `${cpus[start]}-${cpus[end]}`);
    start = end + 1;
  }
  return parts.join(",");
}

/** How many bits of a 32-bit number are set. */
export function onesIn(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return (((bits + (bits >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}
