import type { Container, IdentifiedPod, PodUid } from "../../src/ground/model/index.ts";
import { testContainer, testPod } from "./pods.ts";

/** A container whose limits are its requests: "2", or "2 6Gi" with its memory, or with more of the list. */
export function sized(name: string, text: string, more: Partial<Container> = {}): Container {
  const [cpu = "1", memory = "1Gi", ...rest] = text.split(" ");
  const pages = Object.fromEntries(rest.map((entry) => entry.split("=") as [string, string]));
  const requests = { cpu, memory, ...pages };
  return testContainer(name, { resources: { requests, limits: requests }, ...more });
}

/** A Guaranteed pod of such containers. */
export function sizedPod(
  uid: string,
  containers: Readonly<Record<string, string>>,
  inits: Readonly<Record<string, string>> = {},
): IdentifiedPod {
  const initContainers = Object.entries(inits).map(([name, text]) => {
    const isSidecar = text.startsWith("sidecar ");
    return sized(name, text.replace("sidecar ", ""), isSidecar ? { restartPolicy: "Always" } : {});
  });
  const spec = { containers: Object.entries(containers).map(([name, text]) => sized(name, text)), initContainers };
  return testPod(spec, { uid: uid as PodUid, name: uid });
}
