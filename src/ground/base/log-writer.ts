import type { Clock } from "./clock.ts";
import type { LogFields, Logger } from "./log.ts";
import { formatJson, formatText, type LogFormat, type LogRecord } from "./log-format.ts";
import { type ComponentVerbosity, LogLevels } from "./log-levels.ts";
import { LogStream, type WriteBytes } from "./log-stream.ts";
import { RecentLines } from "./recent-lines.ts";

export interface LogSettings {
  readonly format: "text" | "json";
  readonly verbosity: number;
  readonly vmodule: readonly ComponentVerbosity[];
  /** Errors go to stderr and all else to stdout; otherwise everything goes to stderr. */
  readonly splitStream: boolean;
  /** How many bytes of non-error lines may wait for `flushFrequencyMs`; only with split streams. */
  readonly infoBufferBytes: number;
  readonly flushFrequencyMs: number;
}

export const defaultLogSettings: LogSettings = {
  format: "text",
  verbosity: 0,
  vmodule: [],
  splitStream: false,
  infoBufferBytes: 0,
  flushFrequencyMs: 5_000,
};

/** The log of the process: formats lines, decides which are shown and where they go. Lines never block the caller. */
export class LogWriter {
  readonly #clock: Clock;
  readonly #pid: number;
  readonly #errors: LogStream;
  readonly #infos: LogStream;
  #format: LogFormat = formatText;
  #levels: LogLevels = new LogLevels(0);
  #split = false;
  #recent: RecentLines | undefined;

  constructor(outlet: { clock: Clock; pid: number; stdout: WriteBytes; stderr: WriteBytes }, settings: LogSettings) {
    this.#clock = outlet.clock;
    this.#pid = outlet.pid;
    this.#errors = new LogStream(outlet.stderr, outlet.clock);
    this.#infos = new LogStream(outlet.stdout, outlet.clock);
    this.configure(settings);
  }

  /** Loggers handed out before follow the new settings too. */
  configure(settings: LogSettings): void {
    this.#format = settings.format === "json" ? formatJson : formatText;
    this.#levels = new LogLevels(settings.verbosity, settings.vmodule);
    this.#split = settings.splitStream;
    this.#infos.setBuffer({ bytes: settings.infoBufferBytes, flushMs: settings.flushFrequencyMs });
  }

  get verbosity(): number {
    return this.#levels.verbosity;
  }

  set verbosity(level: number) {
    this.#levels.verbosity = level;
  }

  logger(component: string): Logger {
    const line = (severity: LogRecord["severity"], message: string, fields?: LogFields, error?: { value: unknown }) =>
      this.#write({ severity, at: this.#clock.now(), verbosity: 0, component, message, error, fields });
    return {
      info: (message, fields) => line("info", message, fields),
      warn: (message, fields) => line("warning", message, fields),
      error: (message, error, fields) => line("error", message, fields, { value: error }),
      debug: (level, message, fields) => {
        if (!this.#levels.shows(component, level)) return;
        const at = this.#clock.now();
        this.#write({ severity: "info", at, verbosity: level, component, message, error: undefined, fields });
      },
      named: (other) => this.logger(other),
    };
  }

  /** The last line of a process that ends because of a defect in it. */
  fatal(message: string, error: unknown): void {
    const at = this.#clock.now();
    this.#write({
      severity: "fatal",
      at,
      verbosity: 0,
      component: "main",
      message,
      error: { value: error },
      fields: undefined,
    });
  }

  /** From now on the last lines are kept in memory, for who wants to see them. */
  remember(): RecentLines {
    this.#recent ??= new RecentLines();
    return this.#recent;
  }

  /** Text as it is, in its turn among the lines on stderr. */
  plain(text: string): void {
    this.#errors.push(text);
  }

  /** Resolves when every line so far has left the process. */
  async flush(): Promise<void> {
    await Promise.all([this.#errors.flush(), this.#infos.flush()]);
  }

  /** How long the slowest stream has been waiting for its reader. */
  get stalledMs(): number {
    return Math.max(this.#errors.stalledMs, this.#infos.stalledMs);
  }

  #write(record: LogRecord): void {
    const isError = record.severity === "error" || record.severity === "fatal";
    const stream = isError || !this.#split ? this.#errors : this.#infos;
    if (stream.stalledMs === 0) this.#reportDropped(stream, record.at);
    const line = this.#format(record, this.#pid);
    this.#recent?.add(line);
    stream.push(line);
  }

  #reportDropped(stream: LogStream, at: number): void {
    const lines = stream.takeDropped();
    if (lines === 0) return;
    const message = "Log lines were dropped because their reader stalled";
    const record = { severity: "warning", at, verbosity: 0, component: "log", message, fields: { lines } } as const;
    stream.push(this.#format({ ...record, error: undefined }, this.#pid));
  }
}
