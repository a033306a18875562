import type { IncomingMessage, ServerResponse } from "node:http";
import { type Logger, messageOf } from "../../ground/base/index.ts";
import { sendText } from "./http.ts";
import type { LogVerbosity } from "./ports.ts";
import { readRequestText } from "./read-request-text.ts";

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
    body = (await readRequestText(request, 64)).trim();
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
