import type { IncomingMessage, ServerResponse } from "node:http";
import { type Logger, messageOf } from "../../ground/base/index.ts";
import { sendText } from "./http.ts";
import type { LogVerbosity } from "./ports.ts";

const highestVerbosity = 2 ** 31 - 1;

/** PUT of a number changes what is logged from now on. */
export async function setVerbosity(
  request: IncomingMessage,
  response: ServerResponse,
  logVerbosity: LogVerbosity,
  log: Logger,
): Promise<void> {
  if (request.method !== "PUT") {
    sendText(response, 406, "unsupported http method");
    return;
  }
  let body: string;
  try {
    body = await readBody(request, 64);
  } catch (error) {
    // Whatever else comes of the body is read past, so that the client gets to read the refusal.
    request.resume();
    sendText(response, 400, `${messageOf(error)}\n`, { Connection: "close" });
    return;
  }
  const level = Number(body);
  if (!/^\d+$/.test(body) || level > highestVerbosity) {
    sendText(response, 400, `${JSON.stringify(body)} is not a verbosity; want a whole number from 0\n`);
    return;
  }
  logVerbosity.verbosity = level;
  log.info("Log verbosity changed", { verbosity: level });
  sendText(response, 200, `successfully set klog.logging.verbosity to ${level}`);
}

async function readBody(request: IncomingMessage, maxBytes: number): Promise<string> {
  let text = "";
  // Leaving the loop must not break the connection: the refusal is still to be sent on it.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    if (text.length > maxBytes) throw new Error(`the body is longer than ${maxBytes} bytes`);
  }
  return text.trim();
}
