// Seeds that found defects. What a seed leads to changes with the simulation and with the agent, so that each defect also
// has a test beside the code where one can be written; the seeds stay because they cost a second.
export const foundSeeds = [
  { seed: 6, minutes: 40, what: "a container that is done fails its probe before its end is noticed, and stays done" },
  { seed: 13, minutes: 40, what: "a sidecar's restarts are counted on when its pod gets a new sandbox" },
  { seed: 429, minutes: 60, what: "of instances made around a clock that is set back, the last attempt is kept" },
  { seed: 1081, minutes: 20, what: "an older record that removal left behind takes back no restart count" },
  { seed: 405, minutes: 5, what: "a postStart hook that is never answered ends with its container" },
  { seed: 600, minutes: 5, what: "a container that could not start takes no place of the one before, which ended" },
  { seed: 665, minutes: 5, what: "a mirror learns of a status that is older than the agent's life" },
  { seed: 35, minutes: 12, what: "a pod that never got its share of a volume does not keep it staged" },
  { seed: 52, minutes: 5, what: "a container that is not to start again does not in a new sandbox either" },
];
