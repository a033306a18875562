import { describeProblem, formatQuantity, type Problem } from "../../ground/model/index.ts";
import { textTable } from "./text-table.ts";

/** What the agent says would happen with a manifest, as far as it is shown. */
export interface ApplyAnswer {
  readonly at: number;
  readonly runtimeSeenAt?: number;
  readonly file: { readonly path: string; readonly isRead: boolean };
  readonly outcome: "admitted" | "refused" | "waits" | "unchanged" | "invalid" | "no pod";
  readonly problems: readonly Problem[];
  readonly leftOut: Readonly<Record<string, number>>;
  readonly pod?: AppliedPod;
}

interface AppliedPod {
  readonly namespace: string;
  readonly name: string;
  readonly qosClass: string;
  readonly priority: number;
  readonly isCritical: boolean;
  readonly filledIn: readonly { readonly field: string; readonly value: string }[];
  readonly presence: "new" | "the same" | "replaces";
  readonly namesakes: readonly string[];
  readonly verdict:
    | { readonly type: "admitted"; readonly preempts: readonly string[]; readonly forWantOf?: string }
    | { readonly type: "rejected"; readonly reason: string; readonly message: string }
    | { readonly type: "waits"; readonly waitsFor: string };
  readonly objections: readonly { readonly handler: string; readonly reason?: string; readonly message: string }[];
  readonly areSumsBinding: boolean;
  readonly sums: readonly {
    readonly resource: string;
    readonly has: string;
    readonly promised: string;
    readonly asks: string;
    readonly isEnough: boolean;
  }[];
  readonly hostPorts: readonly {
    readonly port: number;
    readonly protocol: string;
    readonly ip: string;
    readonly holder: string;
  }[];
  readonly cgroup?: { readonly path: string; readonly files: Readonly<Record<string, string>> };
  readonly containers: readonly AppliedContainer[];
  readonly volumes: readonly {
    readonly name: string;
    readonly plugin?: string;
    readonly from?: string;
    readonly problem?: string;
    readonly note?: string;
    readonly mountedAt: readonly string[];
  }[];
  readonly images: readonly {
    readonly image: string;
    readonly pullPolicy: string;
    readonly volume?: string;
    readonly state: string;
    readonly sizeBytes?: number;
    readonly problem?: string;
  }[];
}

interface AppliedContainer {
  readonly name: string;
  readonly kind: string;
  readonly cpuShares: number;
  readonly cpuQuotaUs: number;
  readonly cpuPeriodUs: number;
  readonly memoryLimitBytes: number;
  readonly oomScoreAdj: number;
  readonly cpus: string;
  readonly memoryNodes: string;
}

export function applyText(answer: ApplyAnswer, now: number): string {
  const { problems, pod, leftOut } = answer;
  const lines = [
    ...headLines(answer),
    ...section(
      "Problems",
      problems.map((problem) => [problem.severity, describeProblem(problem)]),
    ),
    ...(pod === undefined ? [] : podLines(pod)),
    ...Object.entries(leftOut).map(([what, count]) => `Not shown: ${count} more of ${what}.`),
    ageLine(answer, now),
  ];
  return `${lines.join("\n")}\n`;
}

function headLines({ outcome, pod, file }: ApplyAnswer): readonly string[] {
  const name = pod === undefined ? "This manifest" : `${pod.namespace}/${pod.name}`;
  const says = {
    admitted: "would be admitted",
    refused: "would be refused",
    waits: "would wait",
    unchanged: "is here already, nothing would change",
    invalid: "is no valid pod, nothing would happen",
    "no pod": "holds no pod, nothing would start",
  }[outcome];
  const where = `as ${file.path}${file.isRead ? "" : "; this node reads no manifests (staticPodPath is not set)"}`;
  return [...textTable([[`${name} ${says}`]]), ...textTable([[where]])];
}

function podLines(pod: AppliedPod): readonly string[] {
  const { cgroup } = pod;
  return [
    ...verdictLines(pod),
    `Class: ${pod.qosClass}, priority ${pod.priority}${pod.isCritical ? ", critical: others may have to go for it" : ""}`,
    ...section(
      "Filled in",
      pod.filledIn.map(({ field, value }) => [field, value]),
    ),
    ...sumLines(pod),
    ...section(
      "Host ports that others have",
      pod.hostPorts.map(({ port, protocol, ip, holder }) => [`${protocol} ${ip}:${port}`, holder]),
    ),
    ...section(`Cgroup ${cgroup?.path ?? ""}`, Object.entries(cgroup?.files ?? {})),
    ...section("Containers", pod.containers.map(containerRow)),
    ...section("Volumes", pod.volumes.flatMap(volumeRows)),
    ...section("Images", pod.images.flatMap(imageRows)),
  ];
}

function verdictLines({ verdict, objections, presence, namesakes }: AppliedPod): readonly string[] {
  const rows: string[][] = [];
  if (presence === "replaces") rows.push(["the pod of this file ends first, this one takes its place"]);
  if (presence === "new" && namesakes.length > 0) rows.push([`a static pod of this name is there: ${namesakes[0]}`]);
  switch (verdict.type) {
    case "admitted":
      if (verdict.preempts.length > 0) {
        rows.push([`there is not enough ${verdict.forWantOf}; these would have to go: ${verdict.preempts.join(", ")}`]);
      }
      break;
    case "rejected":
      rows.push([`${verdict.reason}: ${verdict.message}`]);
      break;
    case "waits":
      rows.push([`waits for ${verdict.waitsFor}`]);
  }
  const said = objections.map(({ handler, reason, message }, index) => [
    `${index === 0 ? "decided by" : "also against it:"} ${handler}`,
    ...(index === 0 ? [] : [reason === undefined ? message : `${reason}: ${message}`]),
  ]);
  return [...textTable(rows, "  "), ...textTable(said, "  ")];
}

function sumLines({ sums, areSumsBinding }: AppliedPod): readonly string[] {
  if (sums.length === 0) return [];
  const title = areSumsBinding
    ? "Resources"
    : "Resources (without an API server no pod is refused because they are short)";
  const rows = sums.map(({ resource, has, promised, asks, isEnough }) => [
    resource,
    `the node has ${has}`,
    `promised ${promised}`,
    `this pod asks ${asks}`,
    isEnough ? "" : "NOT ENOUGH",
  ]);
  return section(title, rows);
}

function containerRow(container: AppliedContainer): readonly string[] {
  const { cpuQuotaUs, cpuPeriodUs, memoryLimitBytes, cpus, memoryNodes } = container;
  return [
    container.kind === "regular" ? container.name : `${container.name} (${container.kind})`,
    `cpu shares ${container.cpuShares}`,
    cpuQuotaUs > 0 ? `cpu quota ${cpuQuotaUs} of ${cpuPeriodUs} us` : "no cpu quota",
    memoryLimitBytes > 0 ? `memory limit ${bytesText(memoryLimitBytes)}` : "no memory limit",
    `oom score ${container.oomScoreAdj}`,
    [cpus && `cpus ${cpus}`, memoryNodes && `memory of nodes ${memoryNodes}`].filter(Boolean).join(", "),
  ];
}

function volumeRows(volume: AppliedPod["volumes"][number]): readonly (readonly string[])[] {
  const { name, plugin = "", from, problem, note, mountedAt } = volume;
  const rows = [[name, plugin, from === undefined ? "" : `from ${from}`, mountedAt.join(", ")]];
  if (problem !== undefined) rows.push(["", "MISSING", problem]);
  if (note !== undefined) rows.push(["", "note", note]);
  return rows;
}

function imageRows(used: AppliedPod["images"][number]): readonly (readonly string[])[] {
  const { image, pullPolicy, volume, state, sizeBytes, problem } = used;
  const size = sizeBytes === undefined ? "" : `${(sizeBytes / 1e6).toFixed(1)} MB`;
  const rows = [[image, state, size, `${pullPolicy}${volume === undefined ? "" : `, volume ${volume}`}`]];
  if (problem !== undefined) rows.push(["", problem]);
  return rows;
}

/** A title and what stands below it; nothing where there is nothing. */
function section(title: string, rows: readonly (readonly string[])[]): readonly string[] {
  return rows.length === 0 ? [] : [...textTable([[`${title}:`]]), ...textTable(rows, "  ")];
}

function bytesText(bytes: number): string {
  return formatQuantity(BigInt(bytes) * 1_000_000_000n, "binary");
}

function ageLine({ at, runtimeSeenAt }: ApplyAnswer, now: number): string {
  const ago = (time: number): string => `${Math.max(0, Math.round((now - time) / 1000))} s ago`;
  const runs =
    runtimeSeenAt === undefined ? "what runs is not known yet" : `what runs was listed ${ago(runtimeSeenAt)}`;
  return `Looked at ${ago(at)}; ${runs}. Things may change between look and act.`;
}
