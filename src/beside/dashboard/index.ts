// The pages that people see of this node: a port of their own, and a part of the node's API. Loaded when somebody looks.
export { DashboardListener } from "./listener.ts";
export type { DashboardPorts } from "./ports.ts";

/** Everything but the socket that waits for the first viewer. */
export async function loadDashboard() {
  return (await import("./dashboard.ts")).Dashboard;
}
