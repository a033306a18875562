import type { PullShown } from "../../wire.ts";
import { inMegabytes, longSpan } from "../format.ts";

/** How far a pull is, in the words of `nodelet why`; nothing but its age where the runtime can't tell. */
export function PullBar({ pull }: { readonly pull: PullShown }) {
  const { image, ageMs, doneBytes, totalBytes } = pull;
  const text = ageMs === undefined ? "waits for its turn" : [...farText(pull), `for ${longSpan(ageMs)}`].join(", ");
  const share = doneBytes === undefined || !totalBytes ? undefined : Math.min(100, (doneBytes / totalBytes) * 100);
  return (
    <div class="bar pull-bar">
      <div class="bar-head">
        <span class="bar-label">{image}</span>
        <span class="muted">{text}</span>
      </div>
      {share !== undefined && (
        <div class="bar-track" role="img" aria-label={`${image}: ${text}`}>
          <div class="bar-used" style={{ width: `${share}%` }} />
        </div>
      )}
    </div>
  );
}

function farText({ doneBytes, totalBytes, layers }: PullShown): string[] {
  if (doneBytes === undefined || totalBytes === undefined) return [];
  const percent = totalBytes === 0 ? 0 : Math.floor((doneBytes / totalBytes) * 100);
  const bytes = `${inMegabytes(doneBytes)} of ${inMegabytes(totalBytes)} (${percent} %)`;
  return layers === undefined ? [bytes] : [bytes, `${layers.done} of ${layers.total} layers`];
}
