/** Port: files that outlive the agent and a loss of power. */
export interface LastingFiles {
  /** Undefined: there is none. */
  read(path: string): Promise<string | undefined>;
  /** Whole or not at all. One writer at a time. */
  save(path: string, text: string): Promise<void>;
}

/** A file that follows what is in memory. Changes that come while it is written are written together. */
export class FollowingFile {
  readonly #path: string;
  readonly #files: LastingFiles;
  readonly #content: () => string;
  #written: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  /** What is on disk for certain. */
  #onDisk: string | undefined;

  constructor(path: string, files: LastingFiles, content: () => string) {
    this.#path = path;
    this.#files = files;
    this.#content = content;
  }

  async read(): Promise<string | undefined> {
    this.#onDisk = await this.#files.read(this.#path);
    return this.#onDisk;
  }

  /** Resolves when everything that is so now would outlive the agent, and a loss of power if the files do. */
  save(): Promise<void> {
    this.#next ??= this.#written
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        this.#written = this.#write(this.#content());
        return this.#written;
      });
    return this.#next;
  }

  async #write(text: string): Promise<void> {
    if (text === this.#onDisk) return;
    this.#onDisk = undefined;
    await this.#files.save(this.#path, text);
    this.#onDisk = text;
  }
}
