import type { VirtualMachine } from "./machine.ts";

const report = "/run/vm-state-files";

/**
 * Reads everything that agent and API server keep, before either of them can mend it. What is written of a pod while
 * it runs is not synced, on purpose: whatever it says is about containers that a loss of power ends as well.
 */
const check = `
const { readdirSync, readFileSync, writeFileSync } = require("fs");
const roots = ["/var/lib/kubelet", "/var/lib/nodelet-api"];
const problems = [];
let count = 0;
for (const root of roots) {
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = entry.parentPath + "/" + entry.name;
    if (!entry.isFile() || /\\.(tmp|new)$/.test(path)) continue;
    if (/\\/pods\\/[^/]+\\/(volumes|containers|plugins|etc-hosts)/.test(path)) continue;
    if (/\\/pods\\/[^/]+\\/nodelet(-probes)?\\.json$/.test(path)) continue;
    if (path.includes("/nodelet-api/store") || path.includes("/nodelet-api/objects")) continue;
    const text = readFileSync(path, "utf8");
    const holdsJson = /\\.(json|kubeconfig)$|image_manager|checkpoint|config\\.yaml$/.test(path);
    if (/\\.(crt|key|pem)$/.test(path) && !/-----END [A-Z ]+-----\\s*$/.test(text)) problems.push(path + ": no PEM: " + text.slice(0, 80));
    if (!holdsJson) continue;
    count++;
    try { JSON.parse(text); } catch (error) { problems.push(path + " (" + text.length + " bytes): " + error.message); }
  }
}
writeFileSync("${report}", JSON.stringify({ count, problems }));
`;

export interface StateFilesReport {
  readonly count: number;
  readonly problems: readonly string[];
}

/** Has every later boot read the state files before the agent starts. */
export async function checkStateFilesAtBoot(machine: VirtualMachine): Promise<void> {
  await machine.putFile("/usr/local/lib/vm-state-files.cjs", check);
  const unit = [
    "[Unit]",
    "Before=nodelet.service nodelet-api.service",
    "[Service]",
    "Type=oneshot",
    "ExecStart=/usr/bin/node /usr/local/lib/vm-state-files.cjs",
    "[Install]",
    "WantedBy=multi-user.target",
    "",
  ];
  await machine.putFile("/etc/systemd/system/vm-state-files.service", unit.join("\n"));
  await machine.run("systemctl --quiet enable vm-state-files && sync");
}

export async function stateFilesReport(machine: VirtualMachine): Promise<StateFilesReport> {
  await machine.until("the state files have been read", `test -s ${report} || systemctl is-failed vm-state-files`);
  return JSON.parse(await machine.run(`cat ${report}`));
}
