import { request } from "node:http";
import { waitFor } from "../../../ground/base/index.ts";

const longestAnswer = 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** True when Docker answers; else why not. */
export async function dockerAnswers(socketPath: string, signal: AbortSignal): Promise<true | unknown> {
  try {
    const { status, text } = await ask(socketPath, "GET", "/_ping", undefined, signal);
    return status === 200 ? true : new Error(text);
  } catch (error) {
    signal.throwIfAborted();
    return error;
  }
}

export async function dockerHasImage(socketPath: string, name: string, signal: AbortSignal): Promise<boolean> {
  return (await ask(socketPath, "GET", `/images/${name}/json`, undefined, signal)).status === 200;
}

/** Brings in the images of an archive. */
export async function dockerLoad(socketPath: string, archive: Buffer, signal: AbortSignal): Promise<void> {
  const { status, text } = await ask(socketPath, "POST", "/images/load?quiet=1", archive, signal);
  // A failure comes after the status, as a line of the answer.
  if (status !== 200 || text.includes('"error"')) throw new Error(`docker took no images: ${text.slice(0, 500)}`);
}

async function ask(
  socketPath: string,
  method: string,
  path: string,
  body: Buffer | undefined,
  signal: AbortSignal,
): Promise<Answer> {
  const headers = { Host: "docker", "Content-Type": "application/x-tar", "Content-Length": body?.length ?? 0 };
  const sent = request({ socketPath, method, path, headers, agent: false });
  return await waitFor<Answer>(signal, (done, fail) => {
    sent.on("error", fail);
    sent.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        if (text.length < longestAnswer) text += chunk;
      });
      response.on("error", fail).on("end", () => done({ status: response.statusCode ?? 0, text }));
    });
    sent.end(body);
    return () => sent.destroy();
  });
}
