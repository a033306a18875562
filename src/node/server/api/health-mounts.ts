import type { HealthRegistry } from "../health.ts";
import { type HealthDetail, healthzHandler, withPing } from "../healthz.ts";
import { sendText } from "../http.ts";
import type { ApiCall, ApiMount } from "./router.ts";

/** Told of every check's outcome when all of them are asked. */
export type OnHealthAsked = (outcomes: readonly { readonly name: string; readonly ok: boolean }[]) => void;

/** /healthz, where every check counts, and /healthz/NAME, which tells why one fails. */
export function healthMounts(
  health: HealthRegistry,
  detail: HealthDetail,
  onAsked: OnHealthAsked,
): readonly ApiMount[] {
  const all = healthzHandler(health, detail);
  const nameOf = (path: string): string | undefined => /^\/healthz\/([^/]+)$/.exec(path)?.[1];
  const entryOf = (path: string) => withPing(health.read()).find(({ name }) => name === nameOf(path));
  return [
    {
      type: "path",
      path: "/healthz",
      handle: ({ query, response }) => {
        onAsked(withPing(health.read()).map(({ name, health: { state } }) => ({ name, ok: state !== "failed" })));
        all(query, response);
      },
    },
    {
      type: "paths",
      has: (path) => nameOf(path) !== undefined && entryOf(path) !== undefined,
      handle: ({ path, response }: ApiCall) => {
        const state = entryOf(path)?.health;
        if (state?.state === "failed") sendText(response, 500, `internal server error: ${state.reason}\n`);
        else sendText(response, 200, "ok");
      },
    },
  ];
}
