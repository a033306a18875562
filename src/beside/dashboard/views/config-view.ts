import { stat } from "node:fs/promises";
import { isSecret } from "../../../ground/base/index.ts";
import {
  type AgentConfig,
  describeOrigin,
  type EffectiveSetting,
  effectiveFields,
  effectiveFlags,
} from "../../../ground/config/index.ts";
import type { ConfigView, SettingView } from "../wire.ts";
import { hidden } from "./redacted.ts";

/** Every setting that is in effect, where it comes from, and whether its file says something else by now. */
export async function configView(config: AgentConfig, startedAt: number): Promise<ConfigView> {
  const settings = [...effectiveFields(config), ...effectiveFlags(config)].map(settingView);
  const origins = Object.values(config.origins);
  const named = origins.flatMap((origin) => ("path" in origin ? [origin.path] : []));
  const files = [...new Set([...(config.flags.configFile === "" ? [] : [config.flags.configFile]), ...named])];
  const looked: ConfigView["files"][number][] = [];
  for (const path of files) {
    const changedAt = await stat(path).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    );
    looked.push({ path, changedAt, isNewer: changedAt === undefined || changedAt > startedAt });
  }
  return {
    settings,
    gates: config.gates.all.map(({ name, stage, enabled, default: usual }) => ({
      name,
      stage,
      enabled,
      default: usual,
    })),
    files: looked,
  };
}

function settingView({ name, value, origin, effect, default: usual }: EffectiveSetting): SettingView {
  const isHidden = isSecret(name.split(".").at(-1)?.replace(/^--/, "") ?? "", value);
  return {
    name,
    value: isHidden ? hidden : textOf(value),
    default: textOf(usual),
    origin: describeOrigin(origin),
    isSet: origin.from !== "default",
    effect,
  };
}

function textOf(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
