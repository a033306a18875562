import type { Clock } from "../../../ground/base/index.ts";
import { AnswerError } from "./answer-error.ts";
import { type ApiCall, type ApiMount, accepts } from "./router.ts";

const warning =
  "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.";

/** /flagz: the command line, given or default. */
export function flagzMount(flags: Readonly<Record<string, string>>): ApiMount {
  return {
    type: "path",
    path: "/flagz",
    handle: (call) => {
      const lines = Object.keys(flags)
        .sort()
        .map((name) => `${name}=${flags[name]}`);
      sendPage(call, ["kubelet flagz", warning, "", ...lines]);
    },
  };
}

export interface StatuszFacts {
  readonly version: string;
  readonly kubeletVersion: string;
  readonly startedAt: number;
}

/** /statusz: what runs here and since when. */
export function statuszMount(facts: StatuszFacts, paths: () => readonly string[], clock: Clock): ApiMount {
  return {
    type: "path",
    path: "/statusz",
    handle: (call) => {
      const upSeconds = Math.floor((clock.now() - facts.startedAt) / 1000);
      sendPage(call, [
        "kubelet statusz",
        warning,
        "",
        `Started: ${new Date(facts.startedAt).toUTCString()}`,
        `Up: ${Math.floor(upSeconds / 3600)} hr ${Math.floor(upSeconds / 60) % 60} min ${upSeconds % 60} sec`,
        `Binary version: ${facts.kubeletVersion}`,
        `nodelet version: ${facts.version}`,
        `Paths: ${paths().join(" ")}`,
      ]);
    },
  };
}

function sendPage({ request, response }: ApiCall, lines: readonly string[]): void {
  if (!accepts(request.headers.accept, "text/plain")) {
    throw new AnswerError(406, "only text/plain is offered\n");
  }
  response.writeHead(200, { "Content-Type": "text/plain; charset=utf-8" });
  response.end(`\n${lines.join("\n")}\n`);
}
