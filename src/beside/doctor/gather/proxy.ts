import { isIPv4 } from "node:net";
import type { ExaminedWorld } from "../world.ts";

/** Variables that send requests through a proxy. */
export interface ProxyVariables {
  /** Whose they are, in words. */
  readonly of: string;
  readonly set: readonly string[];
  /** NO_PROXY as it is written. */
  readonly except: string;
}

const proxyNames = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/** Addresses of proxies may hold passwords: only the names of variables are kept. */
export async function proxyOf(
  { machine, env }: ExaminedWorld,
  pid: number | undefined,
): Promise<ProxyVariables | undefined> {
  const content =
    pid === undefined ? undefined : await machine.textIfThere(`/proc/${pid}/environ`).catch(() => undefined);
  const variables = content === undefined ? new Map(Object.entries(env)) : parseEnvironment(content);
  const set = proxyNames.filter((name) => (variables.get(name) ?? "") !== "");
  if (set.length === 0) return undefined;
  const except = variables.get("NO_PROXY") ?? variables.get("no_proxy") ?? "";
  return { of: content === undefined ? "this command" : `the agent (pid ${pid})`, set, except };
}

function parseEnvironment(content: string): ReadonlyMap<string, string | undefined> {
  return new Map(
    content.split("\0").map((entry): [string, string] => {
      const at = entry.indexOf("=");
      return [entry.slice(0, at), entry.slice(at + 1)];
    }),
  );
}

/** Whether a host is reached without the proxy. The machine itself always is. */
export function isExcepted(except: string, host: string): boolean {
  if (host === "localhost" || host === "::1" || host.startsWith("127.")) return true;
  return except
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "")
    .some(
      (each) =>
        each === "*" ||
        each === host ||
        host.endsWith(`.${each.replace(/^\./, "")}`) ||
        (each.includes("/") && overlaps(each, `${host}/32`)),
    );
}

export function overlaps(a: string, b: string): boolean {
  const [first, second] = [rangeOf(a), rangeOf(b)];
  return first !== undefined && second !== undefined && first.from <= second.to && second.from <= first.to;
}

function rangeOf(cidr: string): { readonly from: number; readonly to: number } | undefined {
  const [address = "", bits = ""] = cidr.split("/");
  if (!isIPv4(address) || !/^\d+$/.test(bits)) return undefined;
  const size = 2 ** (32 - Number(bits));
  const value = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  const from = Math.floor(value / size) * size;
  return { from, to: from + size - 1 };
}
