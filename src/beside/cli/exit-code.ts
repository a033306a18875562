interface CommandStatus {
  readonly status?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
}

/** The exit code in the v1 Status that a command in a container ends with; throws where it could not be run. */
export function exitCodeOf(text: string): number {
  if (text === "") throw new Error("the connection to the command was cut before it ended");
  const status = parse(text);
  if (status?.status === "Success") return 0;
  const code = Number(status?.details?.causes?.find(({ reason }) => reason === "ExitCode")?.message);
  if (Number.isInteger(code) && code > 0 && code < 256) return code;
  throw new Error(status?.message ?? text.slice(0, 1000));
}

function parse(text: string): CommandStatus | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
