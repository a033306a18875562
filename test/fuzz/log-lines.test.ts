import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/ground/base/index.ts";
import { chooseDecoder, LogFormatError } from "../../src/node/server/logs/choose-decoder.ts";
import type { LineFilter } from "../../src/node/server/logs/decoder.ts";
import { readLog } from "../../src/node/server/logs/read-log.ts";
import { type FuzzRandom, fuzzTest } from "./fuzzing.ts";

const never = new AbortController().signal;

fuzzTest(
  "a log of any bytes is read the same in one piece and in many, and never longer than its file",
  async (fuzz) => {
    const { random } = fuzz;
    const directory = await mkdtemp(join(tmpdir(), "nodelet-fuzz-logs-"));
    try {
      const path = join(directory, "0.log");
      while (fuzz.goesOn()) {
        const log = oddLog(random);
        const filter: LineFilter = {
          since: random.pick([null, { seconds: 1_600_000_000, nanos: 5 }]) ?? undefined,
          timestamps: random.chance(0.5),
          stream: random.pick(["All", "Stdout", "Stderr"] as const),
        };
        await writeFile(path, log);
        const whole = decodeIn(log, [log.length], filter);
        assert.deepEqual(decodeIn(log, pieces(log.length, random), filter), whole);
        const read: Buffer[] = [];
        const request = { path, tailLines: undefined, limitBytes: undefined, follow: undefined, ...filter };
        const sink = async (bytes: Buffer): Promise<void> => void read.push(Buffer.from(bytes));
        try {
          await readLog(request, sink, systemClock, never);
          if (whole !== "no log") assert.deepEqual(Buffer.concat(read), whole);
        } catch (error) {
          if (!(error instanceof LogFormatError)) throw error;
        }
        // Ends of a log, by lines and by bytes, are found in whatever it holds.
        const limitBytes = random.below(2_000);
        let given = 0;
        const count = async (bytes: Buffer): Promise<void> => {
          given += bytes.length;
        };
        const tail = { ...request, tailLines: random.below(50), limitBytes };
        await readLog(tail, count, systemClock, never).catch((error: unknown) => {
          if (!(error instanceof LogFormatError)) throw error;
        });
        assert.ok(given <= limitBytes, `${given} bytes, asked for ${limitBytes}`);
      }
    } finally {
      await rm(directory, { recursive: true });
    }
  },
);

function decodeIn(log: Buffer, sizes: readonly number[], filter: LineFilter): Buffer | "no log" {
  let decoder: ReturnType<typeof chooseDecoder>;
  try {
    decoder = chooseDecoder(log, filter);
  } catch (error) {
    if (error instanceof LogFormatError) return "no log";
    throw error;
  }
  if (decoder === undefined) return "no log";
  const out: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    // The decoder may use the memory that it is given.
    out.push(Buffer.from(decoder.decode(Buffer.from(log.subarray(at, at + size)))));
    at += size;
  }
  out.push(Buffer.from(decoder.flush()));
  return Buffer.concat(out);
}

function pieces(length: number, random: FuzzRandom): readonly number[] {
  const sizes: number[] = [];
  for (let left = length; left > 0; ) {
    const size = Math.min(left, 1 + random.below(random.pick([3, 100, 70_000])));
    sizes.push(size);
    left -= size;
  }
  return sizes;
}

function oddLog(random: FuzzRandom): Buffer {
  const isDocker = random.chance(0.3);
  const lines = Array.from({ length: 1 + random.below(40) }, (_, index) => {
    if (index > 0 && random.chance(0.15)) return oddLine(random);
    return isDocker ? dockerLine(random) : criLine(random);
  });
  const log = Buffer.concat(lines);
  return random.chance(0.2) ? log.subarray(0, random.below(log.length)) : log;
}

const moments = [
  "2026-11-16T10:00:00.123456789Z",
  "2026-11-16T10:00:00Z",
  "2020-01-01T00:00:00.5+02:00",
  "0001-01-01T00:00:00Z",
];

function criLine(random: FuzzRandom): Buffer {
  const head = `${random.pick(moments)} ${random.pick(["stdout", "stderr"])} ${random.pick(["F", "P", "F:tag", "P:a:b"])} `;
  return Buffer.concat([Buffer.from(head), content(random), Buffer.from("\n")]);
}

function dockerLine(random: FuzzRandom): Buffer {
  const log = content(random).toString("latin1") + random.pick(["\n", ""]);
  return Buffer.from(
    `${JSON.stringify({ log, stream: random.pick(["stdout", "stderr"]), time: random.pick(moments) })}\n`,
  );
}

function content(random: FuzzRandom): Buffer {
  const length = random.pick([0, 1, 100, 16_384, random.chance(0.02) ? 500_000 : 10]);
  return Buffer.from(
    random
      .bytes(Math.min(length, 64))
      .toString("latin1")
      .replaceAll("\n", " ")
      .repeat(1 + length / 64),
    "latin1",
  );
}

function oddLine(random: FuzzRandom): Buffer {
  const line = random.pick([
    Buffer.from("\n"),
    Buffer.from(" \n"),
    Buffer.from("2026-11-16T10:00:00Z stdout"),
    Buffer.from("2026-99-99T99:99:99Z stdout F x\n"),
    Buffer.from(`${"9".repeat(300)} stdout F x\n`),
    Buffer.from("2026-11-16T10:00:00Z stdput F x\n"),
    Buffer.from("2026-11-16T10:00:00Z stdout X x\n"),
    Buffer.from('{"log":"half'),
    Buffer.from(`{"log":${"[".repeat(5_000)}\n`),
  ]);
  return random.chance(0.3) ? Buffer.concat([random.bytes(random.below(300)), line]) : line;
}
