import type { GateSpec } from "./gate-spec.ts";

/** Gates of later kubelets for what this agent can do already. They are off, as that is what a v1.34 node promises. */
export const laterGates = {
  InPlacePodLevelResourcesVerticalScaling: "alpha off",
  InPlacePodVerticalScalingInitContainers: "alpha off",
} as const satisfies Readonly<Record<string, GateSpec>>;

/** In order. */
export const laterGateNames = Object.keys(laterGates).sort() as readonly (keyof typeof laterGates)[];
