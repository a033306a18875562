// The volume engine is killed at random moments while it mounts and unmounts (NODELET_KILLS: how often). In the end nothing may be mounted that
// nobody wants, and nothing lost: neither what pods keep in their volumes nor what outlives them.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { readMounts } from "../../src/connections/host/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { mountWorkHere, unmountAllBelow } from "../../src/pod/volumes/mounting/unmount.ts";
import { TestCsiDriver } from "../support/csi-driver.ts";

const kills = Number(process.env["NODELET_KILLS"] ?? 20);
const repository = fileURLToPath(new URL("../..", import.meta.url));
const program = join(repository, ".nodelet", `volume-child-${process.pid}.mjs`);
const never = new AbortController().signal;
let root: string;
let driver: TestCsiDriver;
let child: ChildProcess | undefined;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "nodelet-kill-"));
  // As one file it starts in a fraction of the time, so that kills hit its work and not its start.
  await build({
    entryPoints: [join(repository, "test/support/volume-child.ts")],
    outfile: program,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    external: ["koffi"],
    logLevel: "error",
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
  });
  driver = new TestCsiDriver(join(root, "driver"), join(root, "registry"));
  await driver.start();
});
after(async () => {
  child?.kill("SIGKILL");
  await driver.stop();
  await unmountAllBelow(root, mountWorkHere);
  await rm(root, { recursive: true, force: true });
  await rm(program, { force: true });
});

/** Starts the engine; resolves when it has begun to work. */
async function start(mode: "work" | "clean"): Promise<{ readonly child: ChildProcess; readonly errors: () => string }> {
  const started = spawn(process.execPath, [program, root, join(root, "registry"), mode], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  child = started;
  let errors = "";
  started.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const ended = once(started, "exit").then(([code]) => {
    throw new Error(`the engine ended with ${code} before it began: ${errors}`);
  });
  await Promise.race([once(started.stdout, "data"), ended]);
  ended.catch(() => {});
  return { child: started, errors: () => errors };
}

async function mountsLeft(): Promise<readonly string[]> {
  return (await readMounts()).map(({ mountPoint }) => mountPoint).filter((point) => point.startsWith(`${root}/`));
}

test(`killed ${kills} times: nothing left mounted, nothing lost`, async (t) => {
  for (const directory of ["local", "host"]) {
    await mkdir(join(root, directory));
    await writeFile(join(root, directory, "precious"), directory);
  }
  await mkdir(driver.dataOf("vol"), { recursive: true });
  await writeFile(join(driver.dataOf("vol"), "precious"), "csi");
  let killedWhileMounted = 0;
  for (let turn = 0; turn < kills; turn++) {
    const { child: engine, errors } = await start("work");
    await systemClock.sleep(Math.random() ** 2 * 1_200, never);
    assert.equal(engine.exitCode, null, errors());
    engine.kill("SIGKILL");
    await once(engine, "exit");
    if ((await mountsLeft()).length > 0) killedWhileMounted++;
    for (const [path, text] of [
      [join(root, "local"), "local"],
      [join(root, "host"), "host"],
      [driver.dataOf("vol"), "csi"],
    ] as const) {
      assert.equal(await readFile(join(path, "precious"), "utf8"), text);
    }
  }
  assert.ok(killedWhileMounted > kills / 4, `only ${killedWhileMounted} kills left anything mounted`);

  const { child: cleaner, errors } = await start("clean");
  if (cleaner.exitCode === null) await once(cleaner, "exit");
  assert.equal(cleaner.exitCode, 0, errors());
  assert.deepEqual(await mountsLeft(), []);
  assert.deepEqual(await readdir(join(root, "pods")), []);
  const staged = await readdir(join(root, "plugins/kubernetes.io/csi", driver.name)).catch(() => []);
  assert.deepEqual(staged, []);
  const steps = (name: string): number => driver.steps().filter((step) => step === name).length;
  t.diagnostic(
    `${killedWhileMounted} of ${kills} kills left mounts behind; the driver saw ${steps("NodePublishVolume")} publish and ` +
      `${steps("NodeUnpublishVolume")} unpublish calls`,
  );
});
