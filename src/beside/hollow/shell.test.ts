import assert from "node:assert/strict";
import { test } from "node:test";
import { behaviourOf } from "./shell.ts";

const out = (text: string) => ({ do: "print", stream: "stdout", text }) as const;
const err = (text: string) => ({ do: "print", stream: "stderr", text }) as const;
const forever = { do: "sleepForever" } as const;

for (const { script, steps, onTerm = "unhandled" } of [
  { script: "exit 3", steps: [{ do: "exit", code: 3 }] },
  { script: "echo a b; echo c >&2", steps: [out("a b\n"), err("c\n")] },
  { script: "echo 'a;  b' && printf 'x\\ny'", steps: [out("a;  b\n"), out("x\ny")] },
  {
    script: "sleep 0.5; false",
    steps: [
      { do: "sleep", ms: 500 },
      { do: "exit", code: 1 },
    ],
  },
  { script: "sleep infinity", steps: [forever] },
  { script: "trap '' TERM; sleep 1", steps: [{ do: "sleep", ms: 1000 }], onTerm: "ignore" },
  {
    script: "trap 'echo bye; exit 5' TERM\nsleep 9 & wait",
    steps: [forever],
    onTerm: [out("bye\n"), { do: "exit", code: 5 }],
  },
  {
    script: "while true; do echo t; sleep 1; done",
    steps: [out("t\n"), { do: "sleep", ms: 1000 }, { do: "goTo", step: 0 }],
  },
  {
    script: "echo m > /dev/termination-log",
    steps: [{ do: "write", path: "/dev/termination-log", text: "m\n", mode: "replace" }],
  },
  { script: "echo m >>/tmp/f", steps: [{ do: "write", path: "/tmp/f", text: "m\n", mode: "append" }] },
  { script: "exec sleep 2", steps: [{ do: "sleep", ms: 2000 }] },
  { script: "nosuch x", steps: [err("sh: nosuch: not found\n"), { do: "exit", code: 127 }] },
]) {
  test(`sh -c "${script}"`, () => {
    assert.deepEqual(behaviourOf(["/bin/sh", "-c", script], "failToStart"), { type: "runs", steps, onTerm });
  });
}

test("a plain program", () => {
  assert.deepEqual(behaviourOf(["/usr/bin/sleep", "3"], "failToStart"), {
    type: "runs",
    steps: [{ do: "sleep", ms: 3000 }],
    onTerm: "unhandled",
  });
});

test("unknown programs run on, or fail to start as runc says it", () => {
  const running = behaviourOf(["nginx", "-g", "daemon off;"], "runForever");
  assert.deepEqual(running.type === "runs" && running.steps, [forever]);
  for (const [program, why] of [
    ["nginx", /exec: "nginx": executable file not found in \$PATH: unknown$/],
    ["/no/such", /exec: "\/no\/such": stat \/no\/such: no such file or directory: unknown$/],
  ] as const) {
    const failing = behaviourOf([program], "failToStart");
    assert.ok(failing.type === "failsToStart" && why.test(failing.message));
  }
});
