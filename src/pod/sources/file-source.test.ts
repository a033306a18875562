import assert from "node:assert/strict";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { manifest, SourceEars, temporaryDirectory } from "../../../test/support/pod-source.ts";
import { TaskScope } from "../../ground/base/index.ts";
import { FileSource, type FileSourceSettings } from "./file-source.ts";

const never = 3_600_000;

interface Running extends AsyncDisposable {
  readonly ears: SourceEars;
  readonly root: string;
  /** The directory of manifests. */
  readonly dir: string;
  write(name: string, text: string): string;
  /** Stops the source and starts another one on the same directories, as after a restart of the agent. */
  restart(): Promise<SourceEars>;
}

async function startSource(
  prepare: (dir: string) => void = () => {},
  overrides: Partial<FileSourceSettings> = {},
): Promise<Running> {
  const temporary = await temporaryDirectory();
  const dir = join(temporary.path, "manifests");
  mkdirSync(dir);
  prepare(dir);
  const settings: FileSourceSettings = {
    path: dir,
    checkFrequencyMs: never,
    lastGoodDirectory: join(temporary.path, "saved"),
    nodeName: "n",
    references: { prevent: true, allow: [] },
    ...overrides,
  };
  let scope = new TaskScope();
  const start = (): SourceEars => {
    const ears = new SourceEars();
    scope.spawn("file source", (signal) => new FileSource(settings, ears.ports).run(signal));
    return ears;
  };
  const ears = start();
  return {
    ears,
    root: temporary.path,
    dir,
    write: (name, text) => {
      const path = join(dir, name);
      writeFileSync(path, text);
      return path;
    },
    restart: async () => {
      await scope.stop();
      scope = new TaskScope();
      return start();
    },
    [Symbol.asyncDispose]: async () => {
      assert.equal(scope.signal.aborted, false, String(scope.signal.reason?.cause));
      await scope.stop();
      await temporary[Symbol.asyncDispose]();
    },
  };
}

const delivered = (ears: SourceEars, ...names: readonly string[]): Promise<void> =>
  ears.until(`pods are ${names.join(", ")}`, () => ears.pods?.join() === names.join());

function namesIn(directory: string): readonly string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}

test("a directory: sorted, any extension, links followed; hidden files and directories passed over", async () => {
  await using source = await startSource((dir) => {
    writeFileSync(join(dir, "b.txt"), manifest("b"));
    writeFileSync(join(dir, "a"), manifest("a"));
    writeFileSync(join(dir, ".hidden.yaml"), manifest("hidden"));
    mkdirSync(join(dir, "sub"));
    writeFileSync(join(dir, "sub", "s.yaml"), manifest("s"));
    writeFileSync(join(dir, "..target"), manifest("linked"));
    symlinkSync("..target", join(dir, "c.yaml"));
    symlinkSync("sub", join(dir, "d"));
  });
  const { ears, dir } = source;
  await delivered(ears, "a-n", "b-n", "linked-n");
  assert.deepEqual(ears.reports, []);
  assert.deepEqual(
    ears.logs.filter((line) => line.startsWith("warn")),
    [
      `warn Skipping something among the manifests that is not a file {"path":"${dir}/d"}`,
      `warn Skipping something among the manifests that is not a file {"path":"${dir}/sub"}`,
    ],
  );
});

test("files added, changed and removed are seen through the kernel's notices alone", async () => {
  await using source = await startSource();
  const { ears } = source;
  await delivered(ears);
  source.write("a.yaml", manifest("a"));
  await delivered(ears, "a-n");
  const first = ears.deliveries.at(-1)?.[0]?.metadata.uid;
  source.write("b.yaml", manifest("b"));
  await delivered(ears, "a-n", "b-n");
  assert.equal(ears.deliveries.at(-1)?.[0]?.metadata.uid, first);
  source.write("a.yaml", manifest("a", "busybox:2"));
  await ears.until("a has a new uid", () => ears.deliveries.at(-1)?.[0]?.metadata.uid !== first);
  assert.equal(ears.deliveries.at(-1)?.[0]?.spec.containers[0]?.image, "busybox:2");
  rmSync(join(source.dir, "b.yaml"));
  await delivered(ears, "a-n");
});

test("many files at once come in few deliveries and without warnings of the platform", async () => {
  await using source = await startSource();
  const warnings: Error[] = [];
  const note = (warning: Error): number => warnings.push(warning);
  process.on("warning", note);
  await delivered(source.ears);
  const names = Array.from({ length: 40 }, (_, index) => `p${index + 10}`);
  for (const name of names) source.write(`${name}.yaml`, manifest(name));
  await delivered(source.ears, ...names.map((name) => `${name}-n`));
  process.off("warning", note);
  assert.deepEqual(warnings, []);
  assert.ok(source.ears.deliveries.length < 10, `${source.ears.deliveries.length} deliveries`);
});

test("an empty directory and a missing path both deliver an empty list; a missing path is logged once", async () => {
  await using source = await startSource(undefined, { checkFrequencyMs: 40 });
  await delivered(source.ears);
  rmSync(source.dir, { recursive: true });
  await source.ears.untilNextRounds(3);
  const complaints = source.ears.logs.filter((line) => line.startsWith("error"));
  assert.deepEqual(complaints, [
    `error Unable to read manifests Error: path does not exist, ignoring {"path":"${source.dir}"}`,
  ]);
  mkdirSync(source.dir);
  source.write("a.yaml", manifest("a"));
  await delivered(source.ears, "a-n");
});

test("a directory that takes the place of another is watched in its turn", async () => {
  await using source = await startSource((dir) => writeFileSync(join(dir, "a.yaml"), manifest("a")));
  const { ears, dir, root } = source;
  await delivered(ears, "a-n");
  mkdirSync(join(root, "next"));
  writeFileSync(join(root, "next", "b.yaml"), manifest("b"));
  renameSync(dir, join(root, "previous"));
  renameSync(join(root, "next"), dir);
  await delivered(ears, "b-n");
  source.write("c.yaml", manifest("c"));
  await delivered(ears, "b-n", "c-n");
});

test("a single file, also when an editor puts a new one in its place", async () => {
  await using temporary = await temporaryDirectory();
  const path = join(temporary.path, "pod.yaml");
  writeFileSync(path, manifest("a"));
  await using source = await startSource(undefined, { path: `${path}` });
  const { ears } = source;
  await delivered(ears, "a-n");
  writeFileSync(join(temporary.path, "new"), manifest("b"));
  renameSync(join(temporary.path, "new"), path);
  await delivered(ears, "b-n");
  rmSync(path);
  await delivered(ears);
});

test("a path with a slash at its end is the same path", async () => {
  await using temporary = await temporaryDirectory();
  writeFileSync(join(temporary.path, "a.yaml"), manifest("a"));
  await using plain = await startSource(undefined, { path: temporary.path });
  await using slashed = await startSource(undefined, { path: `${temporary.path}//` });
  await delivered(plain.ears, "a-n");
  await delivered(slashed.ears, "a-n");
  assert.deepEqual(plain.ears.deliveries, slashed.ears.deliveries);
});

test("something that is neither file nor directory is reported and delivers nothing", async () => {
  await using source = await startSource(undefined, { path: "/dev/null" });
  await source.ears.until("it is reported", () => source.ears.reports.length > 0);
  assert.deepEqual(source.ears.problemsOf("/dev/null"), [
    "Cannot read the manifests: it is neither a directory nor a file",
  ]);
  assert.deepEqual(source.ears.deliveries, []);
});

test("a manifest that turns bad keeps its pod, also over later checks, until it is good again", async () => {
  await using source = await startSource(undefined, { checkFrequencyMs: 40 });
  const { ears } = source;
  const path = source.write("a.yaml", manifest("a"));
  await delivered(ears, "a-n");
  source.write("a.yaml", manifest("a").replace("image:", "imagee:"));
  await ears.until("it is reported", () => ears.reports.length > 0);
  assert.deepEqual(ears.problemsOf(path), [
    'spec.containers[0].imagee: Unknown field, ignored; did you mean "image"? (line 8, column 13)',
    "spec.containers[0].image: Required value (line 7, column 5)",
  ]);
  assert.deepEqual(
    ears.reports.at(-1)?.keeping.map(({ metadata }) => metadata.name),
    ["a-n"],
  );
  await ears.untilNextRounds(3);
  assert.deepEqual(ears.pods, ["a-n"]);
  assert.equal(ears.deliveries.filter((pods) => pods.length === 1).length, 1, "and is not delivered anew");
  assert.equal(ears.reports.length, 1, "the same problem is told once");
  source.write("a.yaml", "apiVersion: v1\nkind: [");
  await ears.until("the other problem is told", () => ears.reports.length === 2);
  assert.deepEqual(ears.pods, ["a-n"]);
  source.write("a.yaml", manifest("a", "busybox:2"));
  await ears.until("it is well again", () => ears.problemsOf(path)?.length === 0);
  await ears.until(
    "the new version is there",
    () => ears.deliveries.at(-1)?.[0]?.spec.containers[0]?.image === "busybox:2",
  );
});

test("a bad manifest that is removed takes its pod along, and its problem", async () => {
  await using source = await startSource();
  const { ears } = source;
  const path = source.write("a.yaml", manifest("a"));
  await delivered(ears, "a-n");
  source.write("a.yaml", "nonsense");
  await ears.until("it is reported", () => ears.problemsOf(path)?.length === 1);
  rmSync(path);
  await delivered(ears);
  await ears.until("the problem is gone", () => ears.problemsOf(path)?.length === 0);
});

test("a warning does not keep a manifest from being used", async () => {
  await using source = await startSource();
  const path = source.write("a.yaml", `${manifest("a")}  hostnetwork: true\n`);
  await delivered(source.ears, "a-n");
  assert.deepEqual(source.ears.problemsOf(path), [
    'spec.hostnetwork: Unknown field, ignored; did you mean "hostNetwork"? (line 9, column 16)',
  ]);
  assert.deepEqual(source.ears.reports.at(-1)?.keeping, []);
});

test("a manifest found bad at start has its last good pod, from what an earlier run saved", async () => {
  await using source = await startSource((dir) => {
    writeFileSync(join(dir, "a.yaml"), manifest("a"));
    writeFileSync(join(dir, "b.yaml"), manifest("b"));
    writeFileSync(join(dir, "c.yaml"), manifest("c"));
  });
  await delivered(source.ears, "a-n", "b-n", "c-n");
  const uids = source.ears.deliveries.at(-1)?.map(({ metadata }) => metadata.uid);
  const saved = join(source.root, "saved");
  await source.ears.until("all are saved", () => namesIn(saved).length === 3);
  source.write("b.yaml", "broken: [");
  await source.ears.until("it is reported", () => source.ears.reports.length === 1);
  const ears = await source.restart();
  await delivered(ears, "a-n", "b-n", "c-n");
  assert.deepEqual(
    ears.deliveries.at(-1)?.map(({ metadata }) => metadata.uid),
    uids,
    "so that nothing is restarted",
  );
  assert.equal(ears.problemsOf(join(source.dir, "b.yaml"))?.length, 1);
  assert.deepEqual(
    ears.reports.at(-1)?.keeping.map(({ metadata }) => metadata.name),
    ["b-n"],
  );
});

test("a manifest found bad at start without an earlier run is reported and the others go on", async () => {
  await using source = await startSource((dir) => {
    writeFileSync(join(dir, "a.yaml"), manifest("a"));
    writeFileSync(join(dir, "b.yaml"), "");
  });
  await delivered(source.ears, "a-n");
  assert.deepEqual(source.ears.problemsOf(join(source.dir, "b.yaml")), ["The manifest is empty; wanted a Pod"]);
});

test("what is saved is private, follows the files, and is forgotten with them", async () => {
  await using source = await startSource();
  const saved = join(source.root, "saved");
  const names = () => namesIn(saved);
  source.write("a.yaml", manifest("a"));
  source.write("b.yaml", manifest("b"));
  await delivered(source.ears, "a-n", "b-n");
  await source.ears.until("both are saved", () => names().filter((name) => name.endsWith(".json")).length === 2);
  for (const name of names()) {
    assert.match(name, /^[0-9a-f]{64}\.json$/);
    assert.equal(statSync(join(saved, name)).mode & 0o777, 0o600);
  }
  assert.equal(statSync(saved).mode & 0o777, 0o700);
  const contents = names().map((name) => JSON.parse(readFileSync(join(saved, name), "utf8")) as { place: string });
  assert.deepEqual(contents.map(({ place }) => place).sort(), [join(source.dir, "a.yaml"), join(source.dir, "b.yaml")]);
  rmSync(join(source.dir, "a.yaml"));
  await delivered(source.ears, "b-n");
  await source.ears.until("one is forgotten", () => names().length === 1);
  rmSync(join(source.dir, "b.yaml"));
  const ears = await source.restart();
  await delivered(ears);
  await ears.until("the other is forgotten at start", () => names().length === 0);
});

test("a damaged save is as good as none", async () => {
  await using source = await startSource((dir) => writeFileSync(join(dir, "a.yaml"), manifest("a")));
  const saved = join(source.root, "saved");
  await delivered(source.ears, "a-n");
  await source.ears.until("it is saved", () => namesIn(saved).length === 1);
  for (const name of readdirSync(saved)) writeFileSync(join(saved, name), "{");
  source.write("a.yaml", "broken");
  const ears = await source.restart();
  await delivered(ears);
  assert.equal(ears.problemsOf(join(source.dir, "a.yaml"))?.length, 1);
});

test("a file written in pieces is not believed before it is whole, even if a piece is a valid pod", async () => {
  await using source = await startSource();
  const { ears } = source;
  await delivered(ears);
  const path = source.write("a.yaml", manifest("a"));
  // Each piece falls into the time that the source gives a fresh file to settle.
  for (const name of ["second", "third"]) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    appendFileSync(path, `  - name: ${name}\n    image: busybox:1\n`);
  }
  await delivered(ears, "a-n");
  assert.deepEqual(
    ears.deliveries.map((pods) => pods[0]?.spec.containers.length ?? 0),
    [0, 3],
  );
});

test("an editor that moves the old file away before it writes the new one does not stop the pod", async () => {
  await using source = await startSource();
  const { ears } = source;
  const path = source.write("a.yaml", manifest("a"));
  await delivered(ears, "a-n");
  renameSync(path, join(source.dir, ".a.yaml.swp"));
  await new Promise((resolve) => setTimeout(resolve, 2));
  source.write("a.yaml", manifest("a", "busybox:2"));
  await ears.until(
    "the new version is there",
    () => ears.deliveries.at(-1)?.[0]?.spec.containers[0]?.image === "busybox:2",
  );
  assert.deepEqual(
    ears.deliveries.slice(1).filter((pods) => pods.length === 0),
    [],
  );
});

test("a manifest that is deleted and written again at once ends its pod and starts it anew", async () => {
  await using source = await startSource();
  const { ears } = source;
  const path = source.write("a.yaml", manifest("a"));
  source.write("b.yaml", manifest("b"));
  await delivered(ears, "a-n", "b-n");
  const uids = ears.deliveries.at(-1)?.map(({ metadata }) => metadata.uid);
  const seen = ears.deliveries.length;
  rmSync(path);
  source.write("a.yaml", manifest("a"));
  await ears.until("both deliveries", () => ears.deliveries.length >= seen + 2);
  const names = ears.deliveries.slice(seen).map((pods) => pods.map(({ metadata }) => metadata.name));
  assert.deepEqual(names, [["b-n"], ["a-n", "b-n"]]);
  assert.deepEqual(
    ears.deliveries.at(-1)?.map(({ metadata }) => metadata.uid),
    uids,
  );
});

test("a manifest that is replaced by the same content, by renaming, leaves its pod alone", async () => {
  await using source = await startSource();
  const { ears } = source;
  const path = source.write("a.yaml", manifest("a"));
  await delivered(ears, "a-n");
  const seen = ears.deliveries.length;
  const fresh = source.write(".a.yaml.new", manifest("a"));
  renameSync(fresh, path);
  source.write("b.yaml", manifest("b"));
  await delivered(ears, "a-n", "b-n");
  assert.equal(ears.deliveries.length, seen + 1);
});

test("a copy of a manifest does not touch the pod that runs, and takes over when the original goes", async () => {
  await using source = await startSource();
  const { ears } = source;
  const original = source.write("web.yaml", manifest("web"));
  await delivered(ears, "web-n");
  const uid = ears.deliveries.at(-1)?.[0]?.metadata.uid;
  const copy = source.write("zzz-copy.yaml", manifest("web"));
  await ears.until("the copy is reported", () => ears.problemsOf(copy) !== undefined);
  assert.deepEqual(ears.problemsOf(copy), [
    `metadata.name: Duplicate value: "web-n": the pod is already described by ${original}`,
  ]);
  assert.equal(ears.deliveries.at(-1)?.[0]?.metadata.uid, uid);
  const again = await source.restart();
  await delivered(again, "web-n");
  assert.equal(again.deliveries.at(-1)?.[0]?.metadata.uid, uid, "also after a restart");
  rmSync(original);
  await again.until("the copy has taken over", () => again.deliveries.at(-1)?.[0]?.metadata.uid !== uid);
  assert.deepEqual(again.pods, ["web-n"]);
  assert.deepEqual(again.problemsOf(copy), []);
});

test("a file edited into another's name keeps the pod it had", async () => {
  await using source = await startSource();
  const { ears } = source;
  source.write("a.yaml", manifest("a"));
  const second = source.write("b.yaml", manifest("b"));
  await delivered(ears, "a-n", "b-n");
  source.write("b.yaml", manifest("a"));
  await ears.until("it is reported", () => ears.problemsOf(second) !== undefined);
  assert.deepEqual(ears.pods, ["a-n", "b-n"]);
  assert.deepEqual(
    ears.reports.at(-1)?.keeping.map(({ metadata }) => metadata.name),
    ["b-n"],
  );
});

for (const { age, aheadMs } of [
  { age: "just now", aheadMs: 0 },
  { age: "a minute ago", aheadMs: 60_000 },
])
  test(`links to what was written ${age} are followed with every check, and one to nowhere is a bad manifest`, async () => {
    await using source = await startSource(
      (dir) => {
        writeFileSync(join(dir, "..one"), manifest("a"));
        symlinkSync("..one", join(dir, "a.yaml"));
      },
      { checkFrequencyMs: 40 },
    );
    const { ears, dir } = source;
    ears.aheadMs = aheadMs;
    await delivered(ears, "a-n");
    writeFileSync(join(dir, "..one"), manifest("a", "busybox:2"));
    await ears.until(
      "the target's change is seen",
      () => ears.deliveries.at(-1)?.[0]?.spec.containers[0]?.image === "busybox:2",
    );
    rmSync(join(dir, "..one"));
    await ears.until("it is reported", () => ears.reports.length > 0);
    assert.deepEqual(ears.problemsOf(join(dir, "a.yaml")), [
      "Cannot read the file: it is a link to something that does not exist",
    ]);
    assert.deepEqual(ears.pods, ["a-n"]);
  });

for (const { name, bytes, wanted } of [
  { name: "not UTF-8", bytes: Buffer.from([0xff, 0xfe, 0x00]), wanted: "The manifest is not UTF-8 text" },
  { name: "too large", bytes: Buffer.alloc(10 * 1024 * 1024 + 1, 0x20), wanted: "The manifest is larger than 10 MiB" },
  {
    name: "a list of pods",
    bytes: "apiVersion: v1\nkind: PodList\nitems: []\n",
    wanted: 'kind: Unsupported value: "PodList": supported values: "Pod" (line 2, column 7)',
  },
]) {
  test(`a file that is ${name} is reported`, async () => {
    await using source = await startSource((dir) => writeFileSync(join(dir, "x"), bytes));
    await source.ears.until("it is reported", () => source.ears.reports.length > 0);
    assert.deepEqual(source.ears.problemsOf(join(source.dir, "x")), [wanted]);
  });
}
