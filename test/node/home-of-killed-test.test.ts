import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { readMounts } from "../../src/connections/host/index.ts";
import { until } from "../support/until.ts";

interface Home {
  readonly directory: string;
  readonly mount: string;
  readonly cgroup: string;
  readonly pid: number;
}

const program = fileURLToPath(new URL("../support/hold-home.ts", import.meta.url));

for (const signal of ["SIGTERM", "SIGKILL"] as const) {
  test(`an agent, its mounts and cgroups go when what started it is ended by ${signal}`, async () => {
    const child = spawn(process.execPath, ["--import", "tsx", program], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = (await once(createInterface(child.stdout), "line")) as [string];
    const { directory, mount, cgroup, pid } = JSON.parse(line) as Home;
    const mounts = await readMounts();
    const hierarchies = mounts.filter(({ fsType }) => fsType.startsWith("cgroup")).map((each) => each.mountPoint);
    const cgroups = (): boolean => hierarchies.some((point) => existsSync(`${point}${cgroup}`));
    assert.ok(mounts.some(({ mountPoint }) => mountPoint === mount));
    assert.ok(cgroups() && existsSync(`/proc/${pid}`));

    child.kill(signal);
    await until("the agent is gone", () => !existsSync(`/proc/${pid}`));
    await until("its directory is gone", () => !existsSync(directory));
    assert.ok(!(await readMounts()).some(({ mountPoint }) => mountPoint.startsWith(directory)));
    assert.ok(!cgroups());
  });
}
