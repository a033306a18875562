/** What is used and promised of a resource, as one bar. */
export function Bar(props: {
  readonly label: string;
  readonly used: number | undefined;
  readonly requested: number | undefined;
  readonly whole: number | undefined;
  /** Of the whole, what pods may have; undefined: all. */
  readonly allocatable?: number | undefined;
  readonly text: (value: number) => string;
}) {
  const { label, used, requested, whole, allocatable, text } = props;
  const share = (value: number | undefined): number =>
    value === undefined || whole === undefined || whole === 0 ? 0 : Math.min(100, (value / whole) * 100);
  const isFull = share(used) > 90;
  const parts = [
    used === undefined ? undefined : `${text(used)} used`,
    requested === undefined || requested === 0 ? undefined : `${text(requested)} requested`,
    allocatable === undefined || whole === undefined || text(allocatable) === text(whole)
      ? undefined
      : `${text(allocatable)} allocatable`,
    whole === undefined ? undefined : `of ${text(whole)}`,
  ].filter((part) => part !== undefined);
  return (
    <div class="bar">
      <div class="bar-head">
        <span class="bar-label">{label}</span>
        <span class="muted">{parts.join(" · ")}</span>
      </div>
      <div class="bar-track" role="img" aria-label={`${label}: ${parts.join(", ")}`}>
        <div class="bar-requested" style={{ width: `${share(requested)}%` }} />
        <div class={isFull ? "bar-used full" : "bar-used"} style={{ width: `${share(used)}%` }} />
        {allocatable !== undefined && share(allocatable) < 100 && (
          <div class="bar-allocatable" style={{ left: `${share(allocatable)}%` }} />
        )}
      </div>
    </div>
  );
}

/** A small bar in the cell of a table: how much of its limit something uses. */
export function Meter({
  value,
  limit,
  text,
}: {
  readonly value: number;
  readonly limit: number;
  readonly text: string;
}) {
  const share = limit === 0 ? 0 : Math.min(100, (value / limit) * 100);
  return (
    <span class="meter" title={text}>
      <span class={share > 90 ? "meter-used full" : "meter-used"} style={{ width: `${share}%` }} />
    </span>
  );
}
