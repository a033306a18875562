import type { ApiMount } from "../../src/node/server/api/router.ts";

/** One request for each thing that an API offers. */
export interface Endpoint {
  readonly method: string;
  /** The pattern of the router that it belongs to, which no other request of the list has. */
  readonly pattern: string;
  /** A path of that pattern. */
  readonly path: string;
}

/** Whoever adds a path to the API adds it to what tests ask for. `{name}` of a pattern becomes `name`. */
export function endpointsOf(mounts: readonly ApiMount[]): readonly Endpoint[] {
  return mounts.flatMap(endpointsOfOne);
}

function endpointsOfOne(mount: ApiMount): readonly Endpoint[] {
  switch (mount.type) {
    case "path":
      return [{ method: "GET", pattern: mount.path, path: mount.path }];
    case "paths":
      return ["/healthz/ping"].filter(mount.has).map((path) => ({ method: "GET", pattern: path, path }));
    case "disabled":
      return [{ method: "GET", pattern: mount.path, path: mount.path }];
    case "service":
      return mount.routes.flatMap(({ methods, pattern }) => {
        const whole = `${mount.path.replace(/\/$/, "")}/${pattern}`;
        const path = whole.replace(/\{(\w+)\*?\}/g, "$1");
        return methods.map((method) => ({ method, pattern: whole, path }));
      });
  }
}
