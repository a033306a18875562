import { type DoctorReport, states } from "../finding.ts";

/** For Prometheus, by way of a collector that reads text files. */
export function reportAsMetrics({ summary }: DoctorReport): string {
  const lines = states.map((state) => `nodelet_doctor_findings{state="${state}"} ${summary[state]}\n`);
  const name = "nodelet_doctor_findings";
  return `# HELP ${name} What the checks of nodelet doctor came to\n# TYPE ${name} gauge\n${lines.join("")}`;
}
