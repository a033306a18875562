// Starts an agent with a mount and a cgroup, says where and waits: for tests of what happens when its process is killed.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createCgroup, run } from "../../src/beside/cli/machine/index.ts";
import { DaemonHome } from "./daemon.ts";

const home = await DaemonHome.create();
const mount = join(home.directory, "mount");
mkdirSync(mount);
await run("mount", ["-t", "tmpfs", "held", mount]);
await createCgroup(home.cgroup);
const agent = home.start();
await agent.isUp();
process.stdout.write(`${JSON.stringify({ directory: home.directory, mount, cgroup: home.cgroup, pid: agent.pid })}\n`);
setInterval(() => {}, 60_000);
