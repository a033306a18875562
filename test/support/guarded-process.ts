// A process with a trial under guard, that looks after it as its first argument says. It ends by itself where it is to survive.
import process from "node:process";
import { silentLogger } from "../../src/ground/base/index.ts";
import { TrialGuard } from "../../src/node/rollout/trial-guard.ts";

const [how, directory = ""] = process.argv.slice(2);
// Patience and slack are three seconds together: a busy machine may keep us from our turn for a while.
const trial = { version: "v1", forMs: 3_000 };
const guard = new TrialGuard(directory, silentLogger, 1_500);
guard.beat(trial);
if (how === "released") guard.release();
if (how === "looked after") setInterval(() => guard.beat(trial), 20);
if (how === "released" || how === "looked after") setTimeout(() => process.exit(0), 7_000);
else setInterval(() => {}, 1_000);
if (how === "blocked") for (;;) {}
