import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { type Clock, runToEnd, systemNames, withDeadline } from "../../ground/base/index.ts";
import { type CloudInstance, parseInstance } from "./instance.ts";

/** A cloud, as far as a node needs to know it. Whoever adds one implements this. */
export interface CloudProvider {
  /** For the log. */
  readonly name: string;
  /** Asks anew each time; rejects when the cloud can't answer. */
  instance(signal: AbortSignal): Promise<CloudInstance>;
}

const longestAnswer = 64 * 1024;
const answerWithinMs = 10_000;

/** The provider that --cloud-instance names: a program that prints JSON, or an address that answers with it. */
export function cloudProviderOf(named: string, clock: Clock): CloudProvider {
  const ask = /^https?:\/\//.test(named)
    ? (signal: AbortSignal) => get(named, signal)
    : (signal: AbortSignal) => run(named, signal);
  const late = (): Error => new Error(`no answer within ${answerWithinMs / 1000} s`);
  return {
    name: withoutSecrets(named),
    instance: async (signal) => parseInstance(await withDeadline(clock, answerWithinMs, late, signal, ask)),
  };
}

function run(program: string, signal: AbortSignal): Promise<string> {
  // A script has others do the work: what hangs is one of those, and would stay, one more with each question.
  return runToEnd({ program, args: [], longestAnswer, withChildren: true }, signal);
}

async function get(url: string, signal: AbortSignal): Promise<string> {
  const request = url.startsWith("https:") ? requestHttps : requestHttp;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { signal, agent: false, lookup: systemNames.lookup, headers: { Accept: "application/json" } }, resolve)
      .on("error", reject)
      .end();
  });
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`answered with ${response.statusCode}`);
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > longestAnswer) throw new Error(`answered with more than ${longestAnswer} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Addresses are written with passwords and tokens in them, which are nobody's business. */
function withoutSecrets(named: string): string {
  if (!URL.canParse(named)) return named;
  const { protocol, host, pathname } = new URL(named);
  return `${protocol}//${host}${pathname}`;
}
