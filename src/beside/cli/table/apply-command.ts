import type { CommandDescription } from "./description.ts";
import { outputOptions, rootDirOption } from "./shared-options.ts";

export const applyDescription = {
  name: "apply",
  group: "pods",
  summary: "say what would happen with a pod manifest on this node",
  description:
    "Says what would happen if MANIFEST were put into the directory of manifests of this node: what is wrong with it and where, what would be filled in, whether the node takes the pod and by which sums, its class, cgroups, volumes, images and host ports. The agent that runs is asked; nothing is stored, reserved or pulled. It applies nothing: to do so, put the file into the directory of manifests (staticPodPath), or use kubectl apply.",
  operands: [{ name: "MANIFEST", means: "a file with one pod, YAML or JSON", presence: "required" }],
  options: {
    "dry-run": { type: "flag", means: "it only says what would happen; without this it refuses" },
    output: { ...outputOptions.output, values: ["text", "json", "yaml"] },
    json: outputOptions.json,
    ...rootDirOption,
  },
  examples: [
    { line: "apply --dry-run web.yaml", means: "would this pod run here?" },
    { line: "apply --dry-run web.yaml -o json", means: "the same for a program" },
  ],
  exits: [
    { code: "0", means: "it would be admitted, or is here already" },
    { code: "1", means: "it would be refused, or is no valid pod" },
    { code: "3", means: "neither: it would wait for something that decides it" },
  ],
} as const satisfies CommandDescription;
