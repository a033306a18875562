import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { podWithVolumes } from "../../../../test/support/volume-node.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import { type PodEvent, uidOf } from "../../../ground/model/index.ts";
import { VolumeFiles } from "../file-processes/volume-files.ts";
import { giveToPodGroup } from "./fs-group.ts";
import type { WantedVolume } from "./kind.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "giving files away needs root" };
const never = new AbortController().signal;

test(
  "a long walk says how far it has come: to the ledger as it goes, in events after 30 s and every minute",
  needsRoot,
  async () => {
    const directory = await mkdtemp(join(tmpdir(), "nodelet-group-"));
    try {
      for (let index = 0; index < 25; index++) {
        const part = join(directory, `d${index}`);
        await mkdir(part);
        await Promise.all(Array.from({ length: 100 }, (_, file) => writeFile(join(part, `f${file}`), "")));
      }
      const volume = { name: "v", emptyDir: {} };
      const pod = podWithVolumes([volume], { securityContext: { fsGroup: 4321 } });
      const wanted: WantedVolume = {
        uid: uidOf(pod),
        specName: "v",
        form: "filesystem",
        directory,
        markers: "",
        pod,
        name: "v",
        source: { type: "inline", volume },
      };
      const clock = new FakeClock();
      const events: PodEvent[] = [];
      const progress: string[] = [];
      const walk = giveToPodGroup(
        { wanted, path: directory, readOnly: false, isOurs: true },
        { progress: (text) => progress.push(text) },
        {
          clock,
          log: silentLogger,
          recordEvent: (_, event) => events.push(event),
          files: new VolumeFiles({ clock, rootDir: "/" }),
        },
        never,
      );
      // Time goes by faster than the files.
      await clock.advance(29_999);
      assert.equal(events.length, 0);
      await clock.advance(1);
      await clock.advance(60_000);
      await walk;
      await clock.advance(600_000);
      assert.equal((await stat(join(directory, "d24/f99"))).gid, 4321);
      assert.deepEqual(
        progress,
        [1_000, 2_000].map((count) => `giving files to group 4321: ${count} done`),
      );
      const subject = `${uidOf(pod)}/v`;
      assert.deepEqual(
        events.map(({ type, reason, message }) => [type, reason, message.replace(/processed \d+/, "processed N")]),
        [
          `Setting volume ownership for ${subject} is taking longer than expected, consider using OnRootMismatch - ` +
            "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods",
          `Setting volume ownership for ${subject}, processed N files.`,
          `Setting volume ownership for ${subject}, processed N files.`,
        ].map((message) => ["Warning", "VolumePermissionChangeInProgress", message]),
      );
    } finally {
      await rm(directory, { recursive: true });
    }
  },
);
