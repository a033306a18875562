import { percentDecoded, percentEncoded } from "./byte-text.ts";

/** Where a request is meant to go. A path is compared and authorised only in its decoded, clean form. */
export type RequestTarget =
  | { readonly type: "path"; readonly path: string; readonly query: URLSearchParams }
  /** The path was written in a roundabout way; the client is told the straight one. */
  | { readonly type: "redirect"; readonly location: string }
  | { readonly type: "malformed"; readonly why: string };

export function parseTarget(target: string): RequestTarget {
  const mark = target.indexOf("?");
  const rawQuery = mark < 0 ? "" : target.slice(mark + 1);
  const rawPath = pathOf(mark < 0 ? target : target.slice(0, mark));
  if (rawPath === undefined) return { type: "malformed", why: "the request target is not a path" };
  const segments: string[] = [];
  for (const raw of rawPath.slice(1).split("/")) {
    const segment = percentDecoded(raw);
    if (segment === undefined) return { type: "malformed", why: `invalid URL escape in ${JSON.stringify(raw)}` };
    // An encoded slash or NUL would be a name that no pod, container or file can have.
    if (/[/\0]/.test(segment)) return { type: "malformed", why: `invalid path element ${JSON.stringify(raw)}` };
    segments.push(segment);
  }
  const clean = cleaned(segments);
  if (clean.length !== segments.length || clean.some((segment, index) => segment !== segments[index])) {
    const location = `/${clean.map(percentEncoded).join("/")}`;
    return { type: "redirect", location: rawQuery === "" ? location : `${location}?${rawQuery}` };
  }
  return { type: "path", path: `/${segments.join("/")}`, query: new URLSearchParams(rawQuery) };
}

/** The path of an origin-form or absolute-form target. */
function pathOf(target: string): string | undefined {
  if (target.startsWith("/")) return target;
  return /^https?:\/\/[^/]*(\/.*)$/i.exec(target)?.[1];
}

/** Without empty and dot segments; a trailing slash (an empty last segment) stays. */
function cleaned(segments: readonly string[]): readonly string[] {
  const result: string[] = [];
  for (const segment of segments) {
    if (segment === "..") result.pop();
    else if (segment !== "." && segment !== "") result.push(segment);
  }
  if (["", ".", ".."].includes(segments.at(-1) ?? "")) result.push("");
  return result.length === 0 ? [""] : result;
}
