import { systemClock } from "../src/base/index.ts";
import * as m from "../src/cli/machine/index.ts";
const signal = new AbortController().signal;
const layout = m.layoutOf("/var/lib/nlt-try");
if (process.argv[2] === "down") { console.log(await m.removeMachine(layout, {graceMs: 1000, report: console.log}, systemClock)); process.exit(); }
const t0=performance.now();
const lap=(s:string)=>console.log(s,Math.round(performance.now()-t0));
await m.claimStateDir(layout, m.subnetNumber(255));
await m.createCgroup(layout.cgroupRoot); lap("cgroup");
const imgs = await m.buildBaseImages(); lap("built");
await m.startContainerd(layout, m.subnetNumber(255), systemClock, signal); lap("containerd");
await m.importImages(layout, imgs, systemClock, signal); lap("imported");
process.exit();
