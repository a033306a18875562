import { explain } from "../../ground/base/index.ts";
import type { ConfigChanges } from "./changes.ts";
import { type ConfigVersion, describeSource } from "./version.ts";

/**
 * Takes over what the kubelet before us ran with and knew to be good, so that a node whose kubelet is exchanged goes on
 * with the configuration it had, also while no API server can be reached. Where its notes are of no use, the files count.
 */
export async function adoptNotes({ record, ports, settings }: ConfigChanges): Promise<void> {
  const { log } = ports;
  const [by] = settings.assignedBy;
  if (ports.oldNotes === undefined || by === undefined) return;
  const { assigned, good, problems } = await ports.oldNotes();
  for (const problem of problems) log.warn("Ignoring what another kubelet saved of its configuration", { problem });
  // Without anything assigned the local files are in use, and have to show anew that they work.
  if (assigned === undefined) return;
  for (const version of [assigned, ...(good === undefined ? [] : [good])]) await atHand(version);
  record.state = {
    ...record.state,
    assigned: { version: assigned.id, by },
    good: good && { version: good.id, needs: [] },
  };
  const why = "the kubelet before this one had noted it so";
  if (good !== undefined) record.note(good.id, "good", why);
  log.info("Takes over the configuration of another kubelet", { source: describeSource(assigned.source) });

  async function atHand(version: ConfigVersion): Promise<void> {
    try {
      await record.saveVersion(version);
    } catch (error) {
      // It is found again where the other kubelet left it.
      log.warn("A configuration can't be saved", { version: version.id, err: explain(error) });
    }
  }
}
