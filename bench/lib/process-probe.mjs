// Loaded into an agent (NODE_OPTIONS=--import): on SIGUSR2 it writes what the process holds to the file it was told.
import { renameSync, writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { queryObjects } from "node:v8";

const probe = setTimeout(() => {}, 0);
const Timer = probe.constructor;
clearTimeout(probe);

process.on("SIGUSR2", () => {
  const file = process.env.NODELET_PROBE_FILE;
  if (file === undefined) return;
  // Counting collects garbage first, so that only what is still held is seen.
  const count = (kind) => queryObjects(kind, { format: "count" });
  const objects = {
    timers: count(Timer),
    abortSignals: count(AbortSignal),
    sockets: count(Socket),
    promises: count(Promise),
    maps: count(Map),
  };
  const active = {};
  for (const kind of process.getActiveResourcesInfo()) active[kind] = (active[kind] ?? 0) + 1;
  const { rss, heapUsed, external } = process.memoryUsage();
  writeFileSync(`${file}.new`, JSON.stringify({ rss, heapUsed, external, active, objects }));
  renameSync(`${file}.new`, file);
});
