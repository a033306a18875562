// `npm run down`: stops the agent and removes its pods and its containerd without a trace.
import { runNodelet } from "./run-nodelet.mjs";
import { buildIfStale, installNpmPackages, setupOrExit } from "./setup.mjs";

setupOrExit(installNpmPackages, buildIfStale);
runNodelet(["down", ...process.argv.slice(2)]);
