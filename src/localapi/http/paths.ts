import type { ApiRequest } from "./api.ts";
import { json, type Reply, text } from "./reply.ts";
import type { PathRequest } from "./request-info.ts";

const version = {
  major: "1",
  minor: "34",
  emulationMajor: "1",
  emulationMinor: "34",
  gitVersion: "v1.34.0+nodelet",
  gitCommit: "",
  gitTreeState: "",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "",
  compiler: "",
  platform: "linux/amd64",
};

/** Answers what is not about objects. */
export function handlePath({ path }: PathRequest, _request: ApiRequest): Reply | undefined {
  switch (path) {
    case "/healthz":
    case "/livez":
    case "/readyz":
      return text("ok");
    case "/version":
    case "/version/":
      return json(version);
    default:
      return undefined;
  }
}
