import type { StorageView } from "../../wire.ts";
import { useAsked } from "../asking.ts";
import { count, inBytes } from "../format.ts";
import { Meter } from "../parts/bar.tsx";
import { Ago, Card, Mark, Nothing, PodLink } from "../parts/marks.tsx";
import { type Column, Table } from "../parts/table.tsx";

type Mounted = StorageView["volumes"][number];
type Local = StorageView["local"][number];

export function StoragePage() {
  const { answer, problem } = useAsked<StorageView>("storage", 5_000);
  if (answer === undefined) return <Nothing>{problem ?? "Asking the agent…"}</Nothing>;
  const { volumes, drivers, leftovers, local } = answer;
  return (
    <>
      {problem !== undefined && <p class="notice">{problem}. This is what was known last.</p>}
      <div class="grid">
        <Card title="Volumes" note={`${volumes.length} on this node`} wide>
          <Table
            label="Volumes"
            rows={volumes}
            columns={volumeColumns}
            keyOf={({ pod, name }) => `${pod.uid} ${name}`}
            sortedBy="Pod"
            empty="No pod has a volume."
          />
        </Card>
        <Card title="Local storage" note="what pods take of the node's own disk: layers, logs, volumes" wide>
          <Table
            label="Local storage"
            rows={local}
            columns={localColumns}
            keyOf={({ pod }) => pod.uid}
            sortedBy="Pod"
            empty="Nothing is known yet."
          />
        </Card>
        <div class="columns">
          <Card title="Storage drivers">
            {drivers.length === 0 ? (
              <Nothing>No CSI driver has registered.</Nothing>
            ) : (
              <ul class="list">
                {drivers.map((name) => (
                  <li key={name}>
                    <Mark tone="good">{name}</Mark>
                  </li>
                ))}
              </ul>
            )}
          </Card>
          <Card title="Volumes that will not go">
            {leftovers.length === 0 ? (
              <Nothing>Nothing of pods that are gone is left.</Nothing>
            ) : (
              <ul class="list">
                {leftovers.map(({ uid, since }) => (
                  <li key={uid}>
                    <Mark tone="busy">{uid}</Mark>{" "}
                    <span class="muted">
                      for <Ago at={since} />
                    </span>
                  </li>
                ))}
              </ul>
            )}
          </Card>
        </div>
      </div>
    </>
  );
}

const volumeColumns: readonly Column<Mounted>[] = [
  {
    name: "Pod",
    cell: ({ pod }) => <PodLink uid={pod.uid}>{pod.name}</PodLink>,
    by: ({ pod, name }) => `${pod.name} ${name}`,
    class: "name",
  },
  { name: "Volume", cell: ({ name }) => name, by: ({ name }) => name },
  { name: "Kind", cell: ({ kind }) => kind, by: ({ kind }) => kind },
  { name: "Source", cell: ({ source }) => source || "–", class: "clip" },
  { name: "State", cell: ({ state, tone }) => <Mark tone={tone}>{state}</Mark>, by: ({ state }) => state },
  { name: "Used", cell: ({ usedBytes }) => inBytes(usedBytes), by: ({ usedBytes }) => usedBytes ?? -1, align: "right" },
  { name: "Of", cell: ({ limitBytes, capacityBytes }) => inBytes(limitBytes ?? capacityBytes), align: "right" },
  { name: "Detail", cell: ({ detail }) => detail, class: "wrap" },
];

const localColumns: readonly Column<Local>[] = [
  {
    name: "Pod",
    cell: ({ pod }) => <PodLink uid={pod.uid}>{pod.name}</PodLink>,
    by: ({ pod }) => pod.name,
    class: "name",
  },
  { name: "Used", cell: ({ usedBytes }) => inBytes(usedBytes), by: ({ usedBytes }) => usedBytes, align: "right" },
  {
    name: "Limit",
    cell: ({ usedBytes, limitBytes }) =>
      limitBytes === undefined ? (
        <span class="muted">none</span>
      ) : (
        <>
          {inBytes(limitBytes)}{" "}
          <Meter value={usedBytes} limit={limitBytes} text={`${inBytes(usedBytes)} of ${inBytes(limitBytes)}`} />
        </>
      ),
    by: ({ limitBytes }) => limitBytes ?? 0,
    align: "right",
  },
  { name: "Files", cell: ({ inodes }) => count(inodes), by: ({ inodes }) => inodes, align: "right" },
];
