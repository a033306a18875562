// API servers send a bookmark about every minute to those who ask.
const bookmarkLimitMs = 150_000;
const beyondTimeoutMs = 30_000;
const silencesThatProveAbsence = 2;

/**
 * How long a watch may bring nothing before it counts as dead. A server that sends bookmarks is never silent for long;
 * with one that does not, only its own end of the watch says that it still lives.
 */
export class SilenceLimit {
  #bookmarks: "expected" | "seen" | "absent" = "expected";
  #silences = 0;

  limitMs(timeoutSeconds: number): number {
    const endsMs = timeoutSeconds * 1_000 + beyondTimeoutMs;
    return this.#bookmarks === "absent" ? endsMs : Math.min(bookmarkLimitMs, endsMs);
  }

  heard(type: string): void {
    this.#silences = 0;
    if (type === "BOOKMARK") this.#bookmarks = "seen";
  }

  wasSilent(): void {
    this.#silences++;
    if (this.#bookmarks === "expected" && this.#silences >= silencesThatProveAbsence) this.#bookmarks = "absent";
  }
}
