import { describeGates } from "../gates/gates.ts";
import { KUBERNETES_VERSION, NODELET_VERSION } from "../version.ts";
import { type Flag, flagTable } from "./flag-table.ts";
import { flagText } from "./flag-text.ts";

const introduction = `nodelet is a Kubernetes node agent that takes the place of the kubelet ${KUBERNETES_VERSION}.

It starts the pods that the API server binds to this node (--kubeconfig), those of a file or
directory (staticPodPath) and those of a URL (staticPodURL), and keeps them as they should be.
Settings come from built-in defaults, then the --config file, then the drop-ins of --config-dir,
then flags; the later one wins. "nodelet config" shows what results and where each value is from.

Usage:
  nodelet [flags]

Flags:
`;

/** The text of --help. */
export function helpText(): string {
  return introduction + [...flagTable.values()].map(describeFlag).join("");
}

function describeFlag(flag: Flag): string {
  const short = flag.shorthand === undefined ? "      " : `  -${flag.shorthand}, `;
  const type = flag.kind.type === "" ? "" : ` ${flag.kind.type}`;
  const shownDefault = describeDefault(flag);
  const lines = [
    `${short}--${flag.name}${type}`,
    `      ${flag.help}${shownDefault === "" ? "" : ` (default ${shownDefault})`}`,
  ];
  if (flag.name === "feature-gates") lines.push(...describeGates().map((gate) => `      ${gate}`));
  if (flag.deprecated !== undefined) lines.push(`      (DEPRECATED: ${flag.deprecated})`);
  return `${lines.join("\n")}\n`;
}

/** The default, unless it is empty, zero or off. */
function describeDefault(flag: Flag): string {
  const text = flagText(flag, flag.default);
  if (["", "[]", "0", "0s", "false"].includes(text)) return "";
  return typeof flag.default === "string" ? JSON.stringify(text) : text;
}

/** The text of --version, or undefined when the start goes on. */
export function versionText(value: unknown): string | undefined {
  if (value === "true") return `Kubernetes ${KUBERNETES_VERSION}\n`;
  if (value !== "raw") return undefined;
  const [major, minor] = KUBERNETES_VERSION.slice(1).split(".");
  return `version.Info{Major:"${major}", Minor:"${minor}", GitVersion:"${KUBERNETES_VERSION}", Compiler:"nodelet ${NODELET_VERSION}", Platform:"linux"}\n`;
}
