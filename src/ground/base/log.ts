/** What the agent's parts need of a log. The writers (klog text, JSON) live in log-writer.ts. */
export interface Logger {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, error: unknown, fields?: LogFields): void;
  /** Shown when the verbosity (-v) is at least `level`. */
  debug(level: number, message: string, fields?: LogFields): void;
  /** A logger whose lines name this component. */
  named(component: string): Logger;
}

export type LogFields = Readonly<Record<string, unknown>>;

export const silentLogger: Logger = {
  info() {},
  warn() {},
  error() {},
  debug() {},
  named: () => silentLogger,
};
