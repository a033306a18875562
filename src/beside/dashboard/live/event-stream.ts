import type { Writable } from "node:stream";
import type { LiveItem, LiveState } from "./live-state.ts";

/**
 * One viewer's stream of server-sent events. It is written to only as fast as it is read: what changes meanwhile is
 * told in its last form when there is room again.
 */
export class EventStream {
  readonly #outlet: Writable;
  readonly #state: LiveState;
  /** Which agent the numbers belong to. */
  readonly #epoch: string;
  #seen: number;
  #canWrite = true;
  #hasBegun: boolean;

  constructor(outlet: Writable, state: LiveState, epoch: string, lastEventId: string | undefined) {
    this.#outlet = outlet;
    this.#state = state;
    this.#epoch = epoch;
    this.#seen = seenBy(lastEventId, epoch);
    this.#hasBegun = this.#seen > 0;
    outlet.on("drain", () => {
      this.#canWrite = true;
      this.send();
    });
  }

  /** Tells what the viewer has not seen. */
  send(): void {
    if (!this.#canWrite) return;
    let items = this.#state.since(this.#seen);
    let text = "";
    if (items === undefined || !this.#hasBegun) {
      this.#hasBegun = true;
      this.#seen = 0;
      items = this.#state.since(0) ?? [];
      text = `event: begin\ndata: ${JSON.stringify(this.#epoch)}\n\n`;
    }
    // Many small writes cost more than one, the more so where each is packed by itself.
    for (const item of items) {
      this.#seen = item.sequence;
      text += this.#text(item);
      if (text.length < writtenTogether) continue;
      this.#write(text);
      text = "";
      if (!this.#canWrite) return;
    }
    if (text !== "") this.#write(text);
  }

  /** What is no state but a moment, such as a sample: who can't take it now goes without. */
  sendPassing(event: string, json: string): void {
    if (this.#canWrite) this.#write(`event: ${event}\ndata: ${json}\n\n`);
  }

  /** Shows that we are there; a viewer whose machine slept finds out by its absence. */
  sendSignOfLife(): void {
    if (this.#canWrite) this.#write(":\n\n");
  }

  #text({ sequence, key, json }: LiveItem): string {
    return `id: ${this.#epoch}-${sequence}\nevent: set\ndata: [${JSON.stringify(key)},${json}]\n\n`;
  }

  #write(text: string): void {
    // Half a megabyte that nobody reads is enough: Node keeps what the socket does not take.
    this.#canWrite = this.#outlet.write(text) || this.#outlet.writableLength < mostUnreadBytes;
  }
}

const writtenTogether = 32 * 1024;
const mostUnreadBytes = 512 * 1024;

function seenBy(lastEventId: string | undefined, epoch: string): number {
  const [, of, digits] = /^([\w]{1,64})-(\d{1,15})$/.exec(lastEventId ?? "") ?? [];
  return of === epoch && digits !== undefined ? Number(digits) : 0;
}
