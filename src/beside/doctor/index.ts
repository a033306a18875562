// Examines a node: CIS benchmark, what an agent needs of its machine, runtime, API server, pods. Looks, never changes.
export { type Examination, examine } from "./examine.ts";
export { type DoctorFinding, type DoctorReport, type State, states, worstFirst } from "./finding.ts";
export { checkGroups, topics, unknownWords } from "./groups.ts";
export { reportAsJunit } from "./output/junit.ts";
export { reportAsMetrics } from "./output/metrics.ts";
export { reportAsSarif } from "./output/sarif.ts";
export { tellAgent } from "./output/tell-agent.ts";
export { reportAsText } from "./output/text.ts";
