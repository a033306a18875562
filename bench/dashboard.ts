// What the dashboard costs: bytes until it is live, with nobody looking, with one viewer, and how soon a change is seen.
// Args: pods, seconds of each measurement. "missed" names the bars that were not kept.
import { chromium } from "playwright-core";
import { dashboardAddress } from "../src/beside/cli/dashboard-command.ts";
import { systemClock } from "../src/ground/base/index.ts";
import { freePort } from "../test/support/free-port.ts";
import { load } from "./lib/process-cost.ts";
import { type Held, ShownAgent } from "./lib/shown-agent.ts";
import { quantile, rounded } from "./lib/statistics.ts";
import { type Opening, Viewer } from "./lib/viewer.ts";

const podCount = Number(process.argv[2] ?? 100);
const measuredMs = Number(process.argv[3] ?? 20) * 1000;
const changes = Math.min(15, podCount);
const reopened = 7;
const browserPath = process.env["NODELET_BROWSER"] ?? "/usr/bin/chromium-headless-shell";
const forever = new AbortController().signal;
const bars = {
  kilobytesUntilLive: 60,
  foreignRequests: 0,
  serverAndScriptMs: 300,
  unseenTimers: 0,
  unseenMb: 0.3,
  viewerCpuPercent: 1,
  viewerMb: 5,
  changeToScreenMs: 250,
  handlesLeft: 0,
} as const;

/** What is still held: the least of some looks, for the first may come while something is done. */
async function heldBy(agent: ShownAgent): Promise<Held> {
  const looks: Held[] = [];
  for (let look = 0; look < 5; look++) {
    looks.push(await agent.held());
    await systemClock.sleep(1_000, forever);
  }
  return looks.toSorted((a, b) => megabytes(a) - megabytes(b))[0] as Held;
}

async function heldWithout(): Promise<Held> {
  await using agent = await ShownAgent.start(podCount);
  return await heldBy(agent);
}

const megabytes = ({ heapUsed, external }: Held): number => (heapUsed + external) / 2 ** 20;
const handles = ({ active }: Held): number => Object.values(active).reduce((sum, each) => sum + each, 0);
const median = (samples: readonly number[]): number => quantile(samples, 0.5);

const without = await heldWithout();
await using agent = await ShownAgent.start(podCount, [`--dashboard-address=127.0.0.1:${await freePort()}`]);
const unseen = await heldBy(agent);
const address = async (): Promise<string> => (await dashboardAddress(agent.home.rootDir)) ?? "";

// A signal ends this process at once; the browser goes with it, and what the agent has is removed after us.
const signals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false };
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"], ...signals });
try {
  const openings: Opening[] = [];
  const lags: number[] = [];
  let seen = unseen;
  let seenCpu = Number.NaN;
  {
    await using viewer = await Viewer.come(browser);
    // The first time the agent loads its dashboard.
    openings.push(await viewer.open(await address()));
    await viewer.page.evaluate("location.hash = '#/pods'");
    seenCpu = await agent.cpu(measuredMs);
    seen = await heldBy(agent);
    for (let round = 0; round < changes; round++) {
      const drawn = viewer.rowChanged(`seen-${round}`);
      await systemClock.sleep(400, forever);
      const changedAt = systemClock.now();
      agent.crash(`seen-${round}`);
      lags.push((await drawn) - changedAt);
    }
  }
  const agentMs: number[] = [];
  for (let round = 0; round < reopened; round++) {
    await using viewer = await Viewer.come(browser);
    const where = await address();
    const before = agent.cpuMs();
    openings.push(await viewer.open(where));
    agentMs.push(agent.cpuMs() - before);
  }
  await systemClock.sleep(3_000, forever);
  const left = await heldBy(agent);
  // Afterwards: right after a start the agent looks more often whether it has missed something.
  const idleCpu = await agent.cpu(measuredMs);
  const again = openings.slice(1);
  const meanAgentMs = agentMs.reduce((sum, each) => sum + each, 0) / agentMs.length;
  const figures: Record<keyof typeof bars, number> = {
    kilobytesUntilLive: rounded((openings[0]?.bytes ?? Number.NaN) / 1024),
    foreignRequests: openings.reduce((sum, each) => sum + each.foreignRequests, 0),
    serverAndScriptMs: rounded(median(again.map(({ pageMs }) => pageMs)) + meanAgentMs),
    unseenTimers: unseen.objects.timers - without.objects.timers,
    unseenMb: rounded(megabytes(unseen) - megabytes(without), 2),
    viewerCpuPercent: rounded((seenCpu - idleCpu) * 100),
    viewerMb: rounded(megabytes(seen) - megabytes(unseen), 2),
    changeToScreenMs: rounded(median(lags)),
    handlesLeft: handles(left) - handles(unseen),
  };
  const names = Object.keys(bars) as (keyof typeof bars)[];
  console.log(
    JSON.stringify({
      bench: "dashboard",
      pods: podCount,
      ...figures,
      bars,
      missed: names.filter((name) => !(figures[name] <= bars[name])),
      wallMsUntilLive: {
        first: rounded(openings[0]?.wallMs ?? Number.NaN),
        p50: rounded(median(again.map(({ wallMs }) => wallMs))),
      },
      // With what was measured while others looked, for the charts.
      kilobytesWithHistory: rounded(Math.max(...openings.map(({ bytes }) => bytes)) / 1024),
      worstChangeToScreenMs: rounded(Math.max(...lags)),
      idleCpuPercent: rounded(idleCpu * 100),
      // The charts are kept for five minutes, which is one timer.
      afterTheLastLeft: {
        timers: left.objects.timers - unseen.objects.timers,
        mb: rounded(megabytes(left) - megabytes(unseen), 2),
        handles: left.active,
      },
      load: load(),
    }),
  );
} finally {
  await browser.close();
}
