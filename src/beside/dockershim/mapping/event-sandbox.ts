import { PodSandboxStatus } from "../../../connections/cri/index.ts";
import { givenTexts, sandboxIdLabel, typeLabel } from "./labels.ts";
import { parseName } from "./names.ts";

/** The pod that an event of a container tells of, as far as the event itself says it. */
export function eventSandbox(
  containerId: string,
  attributes: Readonly<Record<string, string>>,
): PodSandboxStatus | undefined {
  const name = parseName(attributes["name"] ?? "");
  if (name === undefined) return undefined;
  const isSandbox = attributes[typeLabel] === "podsandbox";
  const id = isSandbox ? containerId : (attributes[sandboxIdLabel] ?? "");
  const { name: _name, image: _image, exitCode: _code, execDuration: _time, ...labels } = attributes;
  const texts = isSandbox ? givenTexts(labels) : { labels: {}, annotations: {} };
  return PodSandboxStatus.fromPartial({
    id,
    metadata: { name: name.pod, namespace: name.namespace, uid: name.uid, attempt: isSandbox ? name.attempt : 0 },
    ...texts,
  });
}
