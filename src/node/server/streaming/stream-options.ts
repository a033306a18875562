import { AnswerError } from "../api/answer-error.ts";

export interface StreamOptions {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** Which streams a client of exec or attach wants: `input`, `output`, `error`, `tty`, each set by `1`. */
export function streamOptions(query: URLSearchParams): StreamOptions {
  const isSet = (name: string): boolean => query.get(name) === "1";
  const tty = isSet("tty");
  // A terminal has one output; upstream drops the other in silence too.
  const options = { stdin: isSet("input"), stdout: isSet("output"), stderr: isSet("error") && !tty, tty };
  if (!options.stdin && !options.stdout && !options.stderr) {
    throw new AnswerError(400, "you must specify at least 1 of stdin, stdout, stderr");
  }
  return options;
}

/**
 * The ports of a port-forward. Only a WebSocket client names them up front, in repeated or comma separated `port`
 * parameters; SPDY has them on each stream.
 */
export function forwardedPorts(query: URLSearchParams, protocol: string | undefined): readonly number[] {
  if (protocol?.toLowerCase() !== "websocket") return [];
  const texts = query.getAll("port");
  if (texts.length === 0) throw new AnswerError(400, 'query parameter "port" is required');
  return texts.flatMap((text) => {
    if (text === "") throw new AnswerError(400, 'query parameter "port" cannot be empty');
    return text.split(",").map(parsePort);
  });
}

function parsePort(text: string): number {
  const quoted = JSON.stringify(text);
  const port = Number(text);
  if (!/^\d+$/.test(text)) throw new AnswerError(400, `unable to parse ${quoted} as a port: invalid syntax`);
  if (port > 65_535) throw new AnswerError(400, `unable to parse ${quoted} as a port: value out of range`);
  if (port < 1) throw new AnswerError(400, `port ${quoted} must be > 0`);
  return port;
}
