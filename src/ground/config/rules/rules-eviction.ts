import { formatDuration } from "../../base/index.ts";
import { keyPath } from "../fields/field-kinds.ts";
import { label } from "../fields/fields.ts";
import { durationOf } from "../text/duration-text.ts";
import {
  evictionSignals,
  isEvictionSignal,
  parseEvictionThreshold,
  parseMinimumReclaim,
} from "../text/eviction-text.ts";
import { TextError } from "../text/go-text.ts";
import { type RuleContext, shown, words } from "./rule-context.ts";

/** Eviction thresholds and graceful shutdown of the node. */
export function checkEviction(context: RuleContext): void {
  checkMap(context, "evictionHard", parseEvictionThreshold);
  checkMap(context, "evictionSoft", parseEvictionThreshold);
  checkMap(context, "evictionSoftGracePeriod", parseGracePeriod);
  checkMap(context, "evictionMinimumReclaim", parseMinimumReclaim);
  const { config, invalid } = context;
  for (const [signal, threshold] of Object.entries(config.evictionSoft)) {
    if (Object.hasOwn(config.evictionSoftGracePeriod, signal) || threshold === "0%" || threshold === "100%") continue;
    const rule = `grace period must be specified for the soft eviction threshold ${signal}`;
    const field = keyPath("evictionSoft", signal);
    invalid(
      field,
      `${label("evictionSoft")} ${shown(`${signal}<${threshold}`)}: ${rule} in ${label("evictionSoftGracePeriod")}`,
    );
  }
  checkShutdown(context);
}

type EvictionMap = "evictionHard" | "evictionSoft" | "evictionSoftGracePeriod" | "evictionMinimumReclaim";

function checkMap({ config, invalid }: RuleContext, path: EvictionMap, parse: (text: string) => unknown): void {
  for (const [signal, text] of Object.entries(config[path])) {
    const field = keyPath(path, signal);
    if (!isEvictionSignal(signal)) {
      invalid(
        field,
        `${label(path)}: unsupported eviction signal ${signal}, must be one of: ${words(evictionSignals)}`,
      );
    }
    try {
      parse(text);
    } catch (error) {
      if (!(error instanceof TextError)) throw error;
      invalid(field, `${label(path)}: ${signal} ${shown(text)} is not valid: ${error.message}`);
    }
  }
}

function parseGracePeriod(text: string): number {
  const period = durationOf(text);
  if (period < 0) throw new TextError("a grace period must not be negative");
  return period;
}

function checkShutdown({ config, invalid, isOn }: RuleContext): void {
  const total = `shutdownGracePeriod ${formatDuration(config.shutdownGracePeriodMs)}`;
  const critical = `shutdownGracePeriodCriticalPods ${formatDuration(config.shutdownGracePeriodCriticalPodsMs)}`;
  const isGiven = config.shutdownGracePeriodMs > 0 || config.shutdownGracePeriodCriticalPodsMs > 0;
  if (isOn("GracefulNodeShutdown")) {
    if (config.shutdownGracePeriodCriticalPodsMs > config.shutdownGracePeriodMs) {
      invalid("shutdownGracePeriodCriticalPods", `${critical} must be <= ${total}`);
    }
    if (isPartOfASecond(config.shutdownGracePeriodMs)) {
      invalid("shutdownGracePeriod", `${total} must be either zero or otherwise >= 1 sec`);
    }
    if (isPartOfASecond(config.shutdownGracePeriodCriticalPodsMs)) {
      invalid("shutdownGracePeriodCriticalPods", `${critical} must be either zero or otherwise >= 1 sec`);
    }
  } else if (isGiven) {
    const rule =
      "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown";
    invalid("shutdownGracePeriod", `${total}, ${critical}: ${rule}`);
  }
  const byPriority = config.shutdownGracePeriodByPodPriority;
  if (byPriority.length === 0) return;
  const path = "shutdownGracePeriodByPodPriority";
  if (!isOn("GracefulNodeShutdownBasedOnPodPriority")) {
    const rule = `requires feature gate GracefulNodeShutdownBasedOnPodPriority`;
    invalid(path, `specifying ${path} ${shown(byPriority)} ${rule}`);
  } else if (isGiven) {
    invalid(path, `cannot specify both ${path} ${shown(byPriority)} and ${total} at the same time`);
  }
}

function isPartOfASecond(ms: number): boolean {
  return ms < 0 || (ms > 0 && ms < 1000);
}
