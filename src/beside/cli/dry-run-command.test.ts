import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { recordIo } from "../../../test/support/command-io.ts";
import { drainCommand, evictCommand, gcCommand } from "./dry-run-command.ts";

let rootDir: string;
let asked = "";
const answers: Readonly<Record<string, unknown>> = {
  evict: {
    signals: [
      {
        signal: "memory.available",
        available: "400Mi",
        isPretended: true,
        thresholds: [
          { kind: "hard", wanted: "500Mi", graceSeconds: 0, metForSeconds: 0 },
          { kind: "soft", wanted: "100Mi", graceSeconds: 90 },
        ],
      },
    ],
    reclaims: ["images"],
    victims: [
      {
        pod: "default/eater",
        signal: "memory.available",
        used: "300Mi",
        requested: "10Mi",
        isOverRequest: true,
        priority: 0,
        frees: "300Mi",
        graceSeconds: 1,
        inSeconds: 0,
      },
    ],
    spared: [{ pod: "kube-system/proxy", why: "its priority is that of the node's own parts" }],
    outcome: "enough",
  },
  gc: {
    images: {
      goes: [{ id: "sha256:1", names: ["old:1"], sizeBytes: 5_000_000, lastUsed: 0, firstSeen: 0 }],
      stays: [
        {
          id: "sha256:2",
          names: [],
          sizeBytes: 1_000_000,
          lastUsed: 0,
          firstSeen: 0,
          because: "container c of d/p uses it",
        },
      ],
      freedBytes: 5_000_000,
      wantedBytes: 9_000_000,
    },
    containers: [{ kind: "container", id: "0123456789abcdef", pod: "default/p", name: "c", createdAt: 0 }],
    logs: [{ directory: "default_gone_u1", sizeBytes: 3_000_000, lastWrittenAt: 0 }],
    pods: [{ uid: "u2" }],
  },
  drain: {
    goes: [
      {
        pod: "default/web",
        graceSeconds: 30,
        hooks: ["main"],
        claims: ["data"],
        loses: ["volume tmp"],
        comesBack: "elsewhere, by ReplicaSet web",
        isOverTime: true,
      },
    ],
    stays: [{ pod: "kube-system/ds", why: "DaemonSet ds would bring it back at once" }],
    expectedSeconds: 30,
    unknown: ["PodDisruptionBudgets"],
  },
};
const server = createServer((request, response) => {
  asked = request.url ?? "";
  const name = /^\/plans\/(\w+)/.exec(asked)?.[1] ?? "";
  if (asked.includes("nonsense")) response.writeHead(400).end('there is no signal "nonsense"\n');
  else response.end(JSON.stringify(answers[name]));
});
before(async () => {
  rootDir = await mkdtemp(join(tmpdir(), "nodelet-dry-"));
  await new Promise<void>((resolve) => server.listen(join(rootDir, "nodelet.sock"), resolve));
});
after(async () => {
  server.close();
  await rm(rootDir, { recursive: true });
});

for (const { command, args, question, says } of [
  {
    command: evictCommand,
    args: ["--signal", "memory.available=400Mi"],
    question: "/plans/evict?signal=memory.available%3D400Mi",
    says: [
      "memory.available: 400Mi available (pretended)",
      "hard: wants 500Mi; too little for 0 s",
      "soft: wants 100Mi, after 90 s; there is enough",
      "First, what nobody uses would be removed: images.",
      "1. default/eater in 0 s, for memory.available: 1 s to end, frees 300Mi",
      "uses 300Mi, asked for 10Mi (over), priority 0",
      "kube-system/proxy: its priority",
      "Then: enough.",
    ],
  },
  {
    command: gcCommand,
    args: ["--all"],
    question: "/plans/gc?all=true",
    says: [
      "Images to go: 1, 5.0 MB of 9.0 MB wanted",
      "old:1: 5.0 MB",
      "sha256:2: 1.0 MB",
      "; container c of d/p uses it",
      "container c of default/p (0123456789ab)",
      "default_gone_u1: 3.0 MB",
      "Directories of pods that are gone, to go: 1\n  u2",
    ],
  },
  {
    command: gcCommand,
    args: ["--images", "--logs"],
    question: "/plans/gc?images=true&logs=true",
    says: ["Images to go: 1"],
  },
  {
    command: drainCommand,
    args: ["--timeout=5m"],
    question: "/plans/drain?timeout=5m",
    says: [
      "Pods to go: 1, within 30 s",
      "longer than the time given",
      "hooks of main run first",
      "to be detached: data",
      "is lost: volume tmp",
      "DaemonSet ds",
      "PodDisruptionBudgets",
    ],
  },
]) {
  test(`nodelet${question.replace("/plans/", " ")} --dry-run: asks the agent and says what it would do`, async () => {
    const told = recordIo("/");
    assert.equal(await command(["--dry-run", "--root-dir", rootDir, ...args], told.io), 0, told.stderr());
    assert.equal(asked, question);
    for (const text of says) assert.ok(told.stdout().includes(text), `${text}\n${told.stdout()}`);
    const json = recordIo("/");
    assert.equal(await command(["--dry-run", "--json", "--root-dir", rootDir], json.io), 0);
    assert.doesNotThrow(() => JSON.parse(json.stdout()));
  });
}

test("without --dry-run, or with what is unknown, the commands say how they are called", async () => {
  for (const args of [[], ["--dry-run", "--all"], ["--dry-run", "--signal"]]) {
    const told = recordIo("/");
    assert.equal(await evictCommand([...args, `--root-dir=${rootDir}`].reverse(), told.io), 2, args.join(" "));
    assert.match(told.stderr(), /usage: nodelet evict --dry-run/);
  }
});

test("what the agent refuses is said in its words", async () => {
  const told = recordIo("/");
  assert.equal(await evictCommand(["--dry-run", "--signal=nonsense=1", `--root-dir=${rootDir}`], told.io), 1);
  assert.match(told.stderr(), /there is no signal "nonsense"/);
});
