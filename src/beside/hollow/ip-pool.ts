/** IPv4 addresses of one range, the lowest free one first; network, gateway and broadcast stay out. */
export class IpPool {
  readonly #base: number;
  readonly #size: number;
  readonly #taken = new Set<number>();

  constructor(cidr: string) {
    const [address = "", prefix = "24"] = cidr.split("/");
    this.#base = address.split(".").reduce((value, part) => value * 256 + Number(part), 0);
    this.#size = 2 ** (32 - Number(prefix));
  }

  /** undefined when every address is in use. */
  take(): string | undefined {
    for (let offset = 2; offset < this.#size - 1; offset++) {
      if (this.#taken.has(offset)) continue;
      this.#taken.add(offset);
      return this.#format(this.#base + offset);
    }
    return undefined;
  }

  release(ip: string): void {
    this.#taken.delete(ip.split(".").reduce((value, part) => value * 256 + Number(part), 0) - this.#base);
  }

  #format(value: number): string {
    return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
  }
}
