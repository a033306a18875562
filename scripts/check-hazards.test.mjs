import assert from "node:assert/strict";
import { test } from "node:test";
import { hazardProblems, idleExceptions } from "./check-hazards.mjs";

for (const [code, count] of [
  ['const text = readFileSync(path, "utf8");', 1],
  ["fs.statSync(path);", 1],
  ['spawnSync("mount", []);', 1],
  ["await runtime.execSync({ containerId }, { signal });", 0],
  ["// readFileSync(path) would wait", 0],
  ["/* Promise.all(pods.map(look)) */", 0],
  ["await Promise.all(pods.map((pod) => look(pod)));", 1],
  ["await Promise.all([...pods].map(look));", 1],
  ["await Promise.allSettled(\n    pods.map(look),\n  );", 1],
  ["await Promise.all([...looks]);", 1],
  ["await Promise.all([look(pod), count(pod)]);", 0],
  ['signal.addEventListener("abort", stop, { once: true });', 1],
  ['signal.addEventListener("abort", () => stop(), { once: true });', 1],
  ['signal.addEventListener("abort", stop);\nsignal.removeEventListener("abort", stop);', 1],
  ["signal.onabort = stop;", 1],
  ['await once(signal, "abort");', 1],
  ["using _ = onAbort(signal, stop);", 0],
  ['socket.addEventListener("close", stop);', 0],
  ["AbortSignal.any([stop, signal])", 1],
  ['path.replace(/\\/+$/, "")', 1],
  ['path.replace(/(.)\\/+$/, "$1")', 1],
  ["const blank = /[ \\t]*$/;", 1],
  ["const digits = /^\\d+$/;", 0],
  ['image.replace(/:[^:/]*$/, "")', 0],
]) {
  test(`${count === 0 ? "allowed" : "forbidden"}: ${code.replaceAll(/\s+/g, " ")}`, () => {
    assert.equal(hazardProblems("workers/some.ts", code).length, count);
  });
}

test("the place is named by file and line", () => {
  const [problem] = hazardProblems("workers/some.ts", "\n\nstatSync(path);\n");
  assert.match(problem, /^src\/workers\/some\.ts:3: synchronous call/);
});

test("what is allowed in one place is so there only, and said when it is not needed", () => {
  const rules = [
    {
      name: "shout",
      find: (code) => (code.includes("!") ? [0] : []),
      instead: "speak",
      allowed: { "loud/": "why", "gone.ts": "why" },
    },
  ];
  assert.deepEqual(hazardProblems("loud/a.ts", "!", rules), []);
  assert.equal(hazardProblems("calm/a.ts", "!", rules).length, 1);
  assert.deepEqual(idleExceptions(new Map([["loud/a.ts", "!"]]), rules), [
    'scripts/hazard-rules.mjs: "shout" is allowed in gone.ts, where there is none',
  ]);
});
