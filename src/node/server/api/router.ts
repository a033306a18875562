import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** One request, as a handler gets it. */
export interface ApiCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The named elements of the route's pattern. */
  readonly params: Readonly<Record<string, string>>;
  /** Set when the client asks to speak another protocol on this connection. */
  readonly upgrade: Upgrade | undefined;
}

export interface Upgrade {
  readonly socket: Duplex;
  /** What the client already sent of the other protocol. */
  readonly head: Buffer;
}

export type ApiHandler = (call: ApiCall) => void | Promise<void>;

/** One route of a service. In a pattern `{name}` is one path element and a last `{name*}` is the rest. */
export interface Route {
  readonly methods: readonly string[];
  readonly pattern: string;
  /** The route gives nothing but this; a client that does not accept it gets 406. */
  readonly produces?: "application/json";
  readonly handle: ApiHandler;
}

/** A place in the tree of paths. */
export type ApiMount =
  /** Any method, this path alone. */
  | { readonly type: "path"; readonly path: string; readonly handle: ApiHandler }
  /** Any method, every path that `has` says exists. */
  | { readonly type: "paths"; readonly has: (path: string) => boolean; readonly handle: ApiHandler }
  /** A service: the path itself and all below. When it ends in a slash, the form without it is redirected there. */
  | {
      readonly type: "service";
      readonly path: string;
      readonly routes: readonly Route[];
      /** Its handlers may take the connection over; everywhere else a wish to speak another protocol is ignored. */
      readonly upgrades?: boolean;
    }
  /** As a service of which nothing is offered. */
  | { readonly type: "disabled"; readonly path: string; readonly reason: string };

export type FoundMount =
  | { readonly type: "mount"; readonly mount: ApiMount }
  | { readonly type: "redirect"; readonly location: string };

/** Which mount a path belongs to; undefined: none, which may be said to anybody. */
export function findMount(mounts: readonly ApiMount[], path: string): FoundMount | undefined {
  for (const mount of mounts) {
    switch (mount.type) {
      case "path":
        if (mount.path === path) return { type: "mount", mount };
        break;
      case "paths":
        if (mount.has(path)) return { type: "mount", mount };
        break;
      case "service":
      case "disabled": {
        const base = mount.path.replace(/\/$/, "");
        if (path === base && base !== mount.path) return { type: "redirect", location: mount.path };
        if (path === base || path.startsWith(`${base}/`)) return { type: "mount", mount };
      }
    }
  }
  return undefined;
}

export type RouteMatch =
  | { readonly type: "route"; readonly handle: ApiHandler; readonly params: Readonly<Record<string, string>> }
  | {
      readonly type: "refused";
      readonly status: 404 | 405 | 406;
      readonly text: string;
      readonly allow?: readonly string[];
    };

/** Which route of a mount answers; the caller is known and allowed by now. */
export function matchRoute(mount: ApiMount, method: string, path: string, accept: string | undefined): RouteMatch {
  if (mount.type === "disabled") return { type: "refused", status: 405, text: `${mount.reason}\n` };
  if (mount.type !== "service") return { type: "route", handle: mount.handle, params: {} };
  const below = path.slice(mount.path.replace(/\/$/, "").length);
  const matching = mount.routes.flatMap((route) => {
    const params = matchPattern(route.pattern, below);
    return params === undefined ? [] : [{ route, params }];
  });
  if (matching.length === 0) return { type: "refused", status: 404, text: "404: Page Not Found" };
  const allowed = matching.find(({ route }) => route.methods.includes(method));
  if (allowed === undefined) {
    const allow = [...new Set(matching.flatMap(({ route }) => route.methods))];
    return { type: "refused", status: 405, text: "405: Method Not Allowed", allow };
  }
  const { produces, handle } = allowed.route;
  if (produces !== undefined && !accepts(accept, produces)) {
    const text = `406: Not Acceptable\n\nAvailable representations: ${produces}`;
    return { type: "refused", status: 406, text };
  }
  return { type: "route", handle, params: allowed.params };
}

function matchPattern(pattern: string, path: string): Readonly<Record<string, string>> | undefined {
  const wanted = elements(pattern);
  const given = elements(path);
  const params: Record<string, string> = {};
  for (const [index, element] of wanted.entries()) {
    const rest = /^\{(\w+)\*\}$/.exec(element)?.[1];
    if (rest !== undefined) {
      if (given.length <= index) return undefined;
      // The trailing slash of a directory is part of the rest.
      params[rest] = given.slice(index).join("/") + (path.endsWith("/") ? "/" : "");
      return params;
    }
    const value = given[index];
    if (value === undefined) return undefined;
    const name = /^\{(\w+)\}$/.exec(element)?.[1];
    if (name !== undefined) params[name] = value;
    else if (element !== value) return undefined;
  }
  return given.length === wanted.length ? params : undefined;
}

function elements(path: string): readonly string[] {
  return path.split("/").filter((element) => element !== "");
}

/** Whether an Accept header allows the type; no header allows all. */
export function accepts(header: string | undefined, type: string): boolean {
  if (header === undefined || header.trim() === "") return true;
  const [main] = type.split("/");
  return header.split(",").some((range) => {
    const [name = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const refused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    return !refused && (name === "*/*" || name === `${main}/*` || name === type);
  });
}
