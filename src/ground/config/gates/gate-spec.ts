export type GateStage = "alpha" | "beta" | "GA" | "deprecated";

/** "beta on": a beta gate that is on by default. Locked gates accept only their default. */
export type GateSpec = `${GateStage} ${"on" | "off"}` | `${GateStage} ${"on" | "off"} locked`;
