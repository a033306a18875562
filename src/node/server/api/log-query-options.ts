import { AnswerError } from "./answer-error.ts";

/** A checked query for logs of services or of one file. */
export interface ServiceQuery {
  readonly services: readonly string[];
  /** A path below the log directory. */
  readonly file: string | undefined;
  readonly sinceTime: number | undefined;
  readonly untilTime: number | undefined;
  readonly tailLines: number | undefined;
  readonly boot: number | undefined;
  readonly pattern: string | undefined;
  /** Something besides the query itself was asked for. */
  readonly hasOptions: boolean;
}

const options = ["sinceTime", "untilTime", "tailLines", "boot", "pattern"];
const mostServices = 4;
const longestName = 256;
const mostLines = 100_000;

/** undefined: no parameter of a query is there. What cannot be read is a 400, what must not be asked a 406. */
export function parseLogQuery(query: URLSearchParams): ServiceQuery | undefined {
  if (!["query", ...options].some((name) => query.has(name))) return undefined;
  const given = (name: string): string | undefined => query.get(name) || undefined;
  const names = query.getAll("query").filter((name) => name.trim() !== "");
  const files = names.filter((name) => /[/\\]/.test(name));
  const services = names.filter((name) => !files.includes(name));
  const parsed: ServiceQuery = {
    services,
    file: files[0],
    sinceTime: time("sinceTime", given("sinceTime")),
    untilTime: time("untilTime", given("untilTime")),
    tailLines: integer("tailLines", given("tailLines")),
    boot: integer("boot", given("boot")),
    pattern: given("pattern"),
    hasOptions: options.some((name) => given(name) !== undefined),
  };
  check(parsed, files);
  return parsed;
}

function check(query: ServiceQuery, files: readonly string[]): void {
  const { services, tailLines, boot, sinceTime, untilTime, pattern } = query;
  const refuse = (why: string): never => {
    throw new AnswerError(406, why);
  };
  if (services.length + files.length === 0) refuse("query: Required value: a service or a file must be given");
  if (services.length > 0 && files.length > 0) refuse("query: services and files cannot be combined");
  if (services.length > mostServices) refuse(`query: at most ${mostServices} services may be given`);
  for (const service of services) {
    if (service.length > longestName) refuse(`query: a service name is longer than ${longestName} characters`);
    if (!/^[a-zA-Z\-_.:0-9@]+$/.test(service)) refuse(`query: input contains unsupported characters: ${service}`);
  }
  if (files.length > 1) refuse("query: cannot specify more than one file");
  if (files.length === 1 && query.hasOptions) refuse("query: cannot specify file with options");
  if (files[0]?.split(/[/\\]/).includes("..")) refuse("query: the file must be inside the log directory");
  if (sinceTime !== undefined && untilTime !== undefined && untilTime < sinceTime) {
    refuse("untilTime: must be after `sinceTime`");
  }
  if (tailLines !== undefined && (tailLines < 0 || tailLines > mostLines)) {
    refuse(`tailLines: must be between 0 and ${mostLines}, inclusive`);
  }
  if (boot !== undefined && boot > 0) refuse("boot: must be less than 1");
  if (pattern !== undefined && !isPattern(pattern)) refuse("pattern: does not parse as a regular expression");
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

function integer(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[+-]?\d{1,15}$/.test(text))
    throw new AnswerError(400, `${name}: ${JSON.stringify(text)} is not a whole number`);
  return Number(text);
}

function time(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const isRfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text);
  const ms = isRfc3339 ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw new AnswerError(400, `${name}: ${JSON.stringify(text)} is not a time in RFC 3339`);
  return ms;
}
