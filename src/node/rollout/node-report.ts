import { cutText } from "../../ground/base/index.ts";
import type { NodeConfigSource, NodeConfigStatus } from "../../ground/model/index.ts";
import type { ReportedVersion, RolloutReport } from "./ports.ts";
import { describeSource, type VersionSource } from "./version.ts";

/** What the Node says of the agent's configuration. */
export interface NodeConfigReport {
  /** In the form of older kubelets: config maps only. */
  readonly status: NodeConfigStatus;
  /** For API servers that don't keep the status; undefined: there is nothing to say. */
  readonly annotation: string | undefined;
}

const longestError = 1_000;

export function nodeConfigReport(report: RolloutReport | undefined): NodeConfigReport | undefined {
  if (report === undefined) return undefined;
  const { active, assigned, good, trial } = report;
  const error = cutText(report.error, longestError);
  const isNews = report.isFollowed || trial !== undefined;
  const shown = (version: ReportedVersion | undefined) =>
    version && { source: describeSource(version.source), version: version.version };
  return {
    status: {
      ...sourceField("assigned", assigned?.source),
      ...sourceField("active", active.source),
      ...sourceField("lastKnownGood", good?.source),
      ...(error === "" ? {} : { error }),
    },
    annotation: isNews
      ? JSON.stringify({
          assigned: shown(assigned),
          active: shown(active),
          lastKnownGood: shown(good),
          trial: trial !== undefined && trial.version === active.version ? true : undefined,
          error: error === "" ? undefined : error,
        })
      : undefined,
  };
}

function sourceField(name: keyof NodeConfigStatus, source: VersionSource | undefined): NodeConfigStatus {
  if (source?.from !== "configMap") return {};
  const { namespace, name: configMap, key: kubeletConfigKey, uid, resourceVersion } = source;
  const value: NodeConfigSource = { configMap: { namespace, name: configMap, kubeletConfigKey, uid, resourceVersion } };
  return { [name]: value };
}
