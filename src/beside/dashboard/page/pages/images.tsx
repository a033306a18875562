import type { BackoffView, ImagesView, ImageView, PullShown } from "../../wire.ts";
import { useAsked } from "../asking.ts";
import { inBytes } from "../format.ts";
import { Ago, Card, Mark, Nothing, PodLink, Until } from "../parts/marks.tsx";
import { PullBar } from "../parts/pull-bar.tsx";
import { type Column, Table } from "../parts/table.tsx";

export function ImagesPage() {
  const { answer, problem } = useAsked<ImagesView>("images", 1_500);
  if (answer === undefined) return <Nothing>{problem ?? "Asking the agent…"}</Nothing>;
  const { pulls, backoffs, images, freedBytes, wantedBytes } = answer;
  const whole = images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const going = images.filter(({ goes }) => goes).length;
  return (
    <>
      {problem !== undefined && <p class="notice">{problem}. This is what was known last.</p>}
      <div class="grid">
        <Card title="Pulls" note={pulls.length === 0 ? undefined : `${pulls.length} under way or waiting`} wide>
          {pulls.length === 0 ? (
            <Nothing>Nothing is being pulled.</Nothing>
          ) : (
            pulls.map((pull) => <Pull key={pull.image} pull={pull} />)
          )}
        </Card>
        <Card title="Back-offs" note="pulls that failed, and when they are tried again" wide>
          <Table
            label="Back-offs"
            rows={backoffs}
            columns={backoffColumns}
            keyOf={({ image, pod }) => `${image} ${pod.uid}`}
            empty="No pull has failed lately."
          />
        </Card>
        <Card title="Images" note={`${images.length} images, ${inBytes(whole)}`} wide>
          <p class="muted">
            {going === 0
              ? "Garbage collection would remove nothing now."
              : `Garbage collection would remove ${going} images now (${inBytes(freedBytes)}${wantedBytes > 0 ? ` of ${inBytes(wantedBytes)} wanted` : ""}).`}
          </p>
          <Table
            label="Images"
            rows={images}
            columns={imageColumns}
            keyOf={({ id }) => id}
            sortedBy="Image"
            empty="There are no images on this node."
          />
        </Card>
      </div>
    </>
  );
}

function Pull({ pull }: { readonly pull: PullShown }) {
  return (
    <div class="pull">
      <PullBar pull={pull} />
      <p class="muted">
        {pull.pods.map(({ uid, name }) => (
          <span key={uid}>
            for <PodLink uid={uid}>{name}</PodLink>{" "}
          </span>
        ))}
      </p>
    </div>
  );
}

const backoffColumns: readonly Column<BackoffView>[] = [
  { name: "Image", cell: ({ image }) => image, class: "name", by: ({ image }) => image },
  { name: "Pod", cell: ({ pod }) => <PodLink uid={pod.uid}>{pod.name}</PodLink> },
  { name: "Reason", cell: ({ reason }) => <Mark tone="bad">{reason}</Mark> },
  { name: "Next try", cell: ({ nextTryAt }) => <Until at={nextTryAt} />, by: ({ nextTryAt }) => nextTryAt },
  { name: "Message", cell: ({ message }) => message, class: "wrap" },
];

const imageColumns: readonly Column<ImageView>[] = [
  { name: "Image", cell: ({ names, id }) => names[0] ?? id, by: ({ names, id }) => names[0] ?? id, class: "name" },
  { name: "Size", cell: ({ sizeBytes }) => inBytes(sizeBytes), by: ({ sizeBytes }) => sizeBytes, align: "right" },
  {
    name: "Last use",
    cell: ({ lastUsed }) => (lastUsed === undefined ? "never" : <Ago at={lastUsed} words=" ago" />),
    by: ({ lastUsed }) => lastUsed ?? 0,
    align: "right",
  },
  {
    name: "Known for",
    cell: ({ firstSeen }) => <Ago at={firstSeen} />,
    by: ({ firstSeen }) => -firstSeen,
    align: "right",
  },
  {
    name: "Garbage collection",
    cell: ({ goes }) => <Mark tone={goes ? "busy" : "good"}>{goes ? "would remove it" : "keeps it"}</Mark>,
    by: ({ goes }) => Number(goes),
  },
  { name: "Because", cell: ({ because }) => because, class: "wrap" },
];
