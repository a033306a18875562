import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

export interface Column<Row> {
  readonly name: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** What is sorted by; without it there is nothing to sort. */
  readonly by?: (row: Row) => string | number;
  readonly align?: "right";
  readonly class?: string;
}

/** Of rows that are not there to be measured. */
const usualRowHeight = 37;
/** More rows than these are drawn only where they are seen. */
const mostDrawn = 200;
const beyond = 12;

interface Order {
  readonly column: string;
  readonly isDown: boolean;
}

/** A table that can be sorted, and has any number of rows. */
export function Table<Row>(props: {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  readonly sortedBy?: string;
  readonly empty: ComponentChildren;
}) {
  const { label, rows, columns, keyOf, sortedBy, empty } = props;
  const [order, setOrder] = useState<Order>({ column: sortedBy ?? "", isDown: false });
  const sorted = useMemo(() => sort(rows, columns, order), [rows, columns, order]);
  const place = useRef<HTMLTableSectionElement>(null);
  const { from, to, rowHeight } = useSeen(place, sorted.length);
  if (rows.length === 0) return <p class="nothing">{empty}</p>;
  const shown = sorted.slice(from, to);
  return (
    <div class="table">
      <table aria-label={label} aria-rowcount={sorted.length + 1}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.name} column={column} order={order} onOrder={setOrder} />
            ))}
          </tr>
        </thead>
        <tbody ref={place}>
          {from > 0 && <Gap height={from * rowHeight} columns={columns.length} />}
          {shown.map((row, index) => (
            <tr key={keyOf(row)} aria-rowindex={from + index + 2}>
              {columns.map(({ name, cell, align, class: kind }) => (
                <td key={name} class={`${align ?? ""} ${kind ?? ""}`}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
          {to < sorted.length && <Gap height={(sorted.length - to) * rowHeight} columns={columns.length} />}
        </tbody>
      </table>
    </div>
  );
}

/** Takes the room of rows that nobody sees. */
function Gap({ height, columns }: { readonly height: number; readonly columns: number }) {
  return (
    <tr class="gap">
      <td colSpan={columns} style={{ height: `${height}px` }} />
    </tr>
  );
}

function Heading<Row>(props: {
  readonly column: Column<Row>;
  readonly order: Order;
  readonly onOrder: (order: Order) => void;
}) {
  const { column, order, onOrder } = props;
  const isSorted = order.column === column.name;
  const direction = !isSorted ? undefined : order.isDown ? "descending" : "ascending";
  return (
    <th scope="col" class={column.align ?? ""} {...(direction !== undefined && { "aria-sort": direction })}>
      {column.by === undefined ? (
        column.name
      ) : (
        <button type="button" onClick={() => onOrder({ column: column.name, isDown: isSorted && !order.isDown })}>
          {column.name}
          <span aria-hidden="true">{!isSorted ? "" : order.isDown ? " ↓" : " ↑"}</span>
        </button>
      )}
    </th>
  );
}

function sort<Row>(rows: readonly Row[], columns: readonly Column<Row>[], order: Order): readonly Row[] {
  const by = columns.find(({ name }) => name === order.column)?.by;
  if (by === undefined) return rows;
  const sorted = rows.toSorted((a, b) => {
    const [first, second] = [by(a), by(b)];
    return typeof first === "number" && typeof second === "number"
      ? first - second
      : String(first).localeCompare(String(second), undefined, { numeric: true });
  });
  return order.isDown ? sorted.reverse() : sorted;
}

/** Which rows are on the screen, or nearly. */
function useSeen(
  place: { readonly current: HTMLElement | null },
  count: number,
): { readonly from: number; readonly to: number; readonly rowHeight: number } {
  const [first, setFirst] = useState(0);
  const height = useRef(usualRowHeight);
  const isLong = count > mostDrawn;
  useEffect(() => {
    if (!isLong) return;
    const look = (): void => {
      const row = place.current?.querySelector<HTMLElement>("tr:not(.gap)");
      if (row) height.current = row.offsetHeight;
      const top = place.current?.getBoundingClientRect().top ?? 0;
      // In steps, so that not every pixel draws anew.
      setFirst(Math.max(0, Math.floor(-top / height.current / beyond) * beyond - beyond));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [isLong, place]);
  const rowHeight = height.current;
  if (!isLong) return { from: 0, to: count, rowHeight };
  const from = Math.min(first, Math.max(0, count - beyond));
  return { from, to: Math.min(count, from + Math.ceil(innerHeight / rowHeight) + 4 * beyond), rowHeight };
}
