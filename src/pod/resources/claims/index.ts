// Resource claims (DRA): which devices of which claims pods have, and the drivers that make them ready.
export { ClaimHealth } from "./claim-health.ts";
export { ClaimError, ClaimManager } from "./claim-manager.ts";
export { claimReport } from "./claim-report.ts";
export { ClaimSweep } from "./claim-sweep.ts";
export { claimsShown } from "./claims-shown.ts";
