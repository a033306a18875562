import type { ServiceEnvironment, ServiceManager } from "../../connections/host/index.ts";
import type { Clock, Logger, TaskScope } from "../../ground/base/index.ts";
import type { HealthEntry, HealthRegistry } from "./health.ts";

/** How often systemd wants a sign of life, or why it wants none. */
export type WatchdogSetting = { readonly timeoutMs: number } | "not asked for" | "asked of another process";

const shortestTimeoutMs = 1_000;
const firstRetryMs = 1_000;
const retryJitter = 0.1;

/** Reads WATCHDOG_USEC and WATCHDOG_PID; a value that cannot be honoured ends the start. */
export function watchdogSetting({ watchdogUsec, watchdogPid }: ServiceEnvironment, ownPid: number): WatchdogSetting {
  if (watchdogUsec === undefined || watchdogUsec === "") return "not asked for";
  const timeoutMs = wholeNumber("WATCHDOG_USEC", watchdogUsec) / 1_000;
  if (timeoutMs <= 0) throw refusal(`WATCHDOG_USEC is "${watchdogUsec}", must be a positive number`);
  if (watchdogPid !== undefined && watchdogPid !== "" && wholeNumber("WATCHDOG_PID", watchdogPid) !== ownPid) {
    return "asked of another process";
  }
  if (timeoutMs <= shortestTimeoutMs) {
    throw refusal(`the watchdog timeout ${timeoutMs} ms (WATCHDOG_USEC) is too small, must be more than 1 s`);
  }
  return { timeoutMs };
}

function wholeNumber(name: string, text: string): number {
  if (!/^[+-]?\d+$/.test(text)) throw refusal(`${name} is "${text}", must be a whole number`);
  return Number(text);
}

function refusal(message: string): Error {
  return new Error(`create health checker: ${message}`);
}

/** Only these say that the agent itself is stuck; a runtime that is away is no reason to restart the agent. */
const vital: ReadonlySet<string> = new Set(["log", "syncloop", "device-plugin"]);

export interface WatchdogPorts {
  readonly health: HealthRegistry;
  readonly service: ServiceManager;
  readonly clock: Clock;
  readonly log: Logger;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/** Answers systemd's watchdog from here on, if it asks for that; throws when it asks for what can't be done. */
export function startWatchdog(
  environment: ServiceEnvironment,
  ownPid: number,
  ports: WatchdogPorts,
  scope: TaskScope,
): void {
  const { log, service } = ports;
  const setting = watchdogSetting(environment, ownPid);
  if (typeof setting === "string") log.debug(1, "No watchdog", { why: setting });
  else if (!service.listens)
    log.warn("systemd asks for watchdog notifications, but NOTIFY_SOCKET is not set; none are sent");
  else {
    log.info("Sending watchdog notifications to systemd", { everyMs: setting.timeoutMs / 2 });
    scope.spawn("watchdog", (signal) => runWatchdog(setting.timeoutMs, ports, signal));
  }
}

/** Sends WATCHDOG=1 at twice the rate asked for, as long as the vital checks pass. */
export async function runWatchdog(timeoutMs: number, ports: WatchdogPorts, signal: AbortSignal): Promise<void> {
  const { clock, health, log } = ports;
  let next = clock.monotonic();
  for (;;) {
    const failed = health.read().filter(isVitalFailure);
    if (failed.length === 0) await sendSign(ports, signal);
    else log.error("No watchdog notification for systemd: the agent is not healthy", failed.map(describe).join("; "));
    next = Math.max(next + timeoutMs / 2, clock.monotonic());
    await clock.sleep(next - clock.monotonic(), signal);
  }
}

function isVitalFailure({ name, health }: HealthEntry): boolean {
  return health.state === "failed" && vital.has(name);
}

function describe({ name, health }: HealthEntry): string {
  return health.state === "failed" ? `${name}: ${health.reason}` : name;
}

async function sendSign({ service, clock, log, random }: WatchdogPorts, signal: AbortSignal): Promise<void> {
  try {
    await service.send({ watchdog: true });
    return;
  } catch (error) {
    log.debug(2, "The first watchdog notification did not reach systemd", { error });
  }
  await clock.sleep(firstRetryMs * (1 + retryJitter * random()), signal);
  try {
    await service.send({ watchdog: true });
  } catch (error) {
    log.error("Failed to notify systemd watchdog", error);
  }
}
