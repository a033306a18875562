export interface RunOnceOptions {
  readonly timeoutMs: number;
  /** The words that remain for the agent itself. */
  readonly argv: readonly string[];
}

const defaultTimeoutMs = 5 * 60_000;

/** Takes our own --timeout out of the agent's flags. Undefined: it has no usable value. */
export function readRunOnceArgs(argv: readonly string[]): RunOnceOptions | undefined {
  const rest: string[] = [];
  let timeoutMs = defaultTimeoutMs;
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? "";
    const value = word === "--timeout" ? argv[++index] : /^--timeout=(.*)$/.exec(word)?.[1];
    if (value === undefined && word !== "--timeout") {
      rest.push(word);
      continue;
    }
    timeoutMs = Number(value) * 1000;
    if (value === undefined || value === "" || !(timeoutMs > 0)) return undefined;
  }
  return { timeoutMs, argv: rest };
}
