import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useRef, useState, type ReactNode } from "react";

export interface Column<Row> {
  key: string;
  header: ReactNode;
  cell: (row: Row) => ReactNode;
  className?: string;
  sort?: "ascending" | "descending" | "other" | "none";
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  rowHeight?: number;
  /** onEnd is called when the last rows come into view. */
  onEnd?: () => void;
}

const OVERSCAN = 12;

/** A table of any length that draws only the rows in view, with the page as its scroller. */
export function VirtualTable<Row>({ label, columns, rows, rowKey, rowHeight = 53, onEnd }: Props<Row>) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [scrollMargin, setScrollMargin] = useState(0);

  useLayoutEffect(() => {
    const top = body.current?.getBoundingClientRect().top ?? 0;
    setScrollMargin(Math.round(top + window.scrollY));
  }, [rows.length === 0]); // eslint-disable-line react-hooks/exhaustive-deps -- it moves only when the table appears

  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN,
    scrollMargin,
    useFlushSync: false, // a frame late rather than a frame lost
  });

  const items = virtualizer.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  const before = (items[0]?.start ?? scrollMargin) - scrollMargin;
  const after = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? scrollMargin) - scrollMargin);

  const atEnd = last >= rows.length - 1;
  useEffect(() => {
    if (atEnd) onEnd?.();
  }, [atEnd, onEnd, rows.length]);

  return (
    <div className="tablewrap">
      <table className="table" aria-label={label} aria-rowcount={rows.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <th key={column.key} scope="col" className={column.className} aria-sort={column.sort}>
                {column.header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer height={before} span={columns.length} />
          {items.map((item) => {
            const row = rows[item.index];
            if (row === undefined) return null;

            return (
              <DrawnRow
                key={rowKey(row)}
                row={row}
                columns={columns}
                index={item.index}
                measure={virtualizer.measureElement}
              />
            );
          })}
          <Spacer height={after} span={columns.length} />
        </tbody>
      </table>
    </div>
  );
}

interface RowProps<Row> {
  row: Row;
  columns: Column<Row>[];
  index: number;
  measure: (element: HTMLTableRowElement | null) => void;
}

/** A row of a VirtualTable. Scrolling draws only the rows that come into view: the others are the same. */
const DrawnRow = memo(function DrawnRow<Row>({ row, columns, index, measure }: RowProps<Row>) {
  return (
    <tr ref={measure} data-index={index} aria-rowindex={index + 2}>
      {columns.map((column) => (
        <td key={column.key} className={column.className}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}) as <Row>(props: RowProps<Row>) => ReactNode;

function Spacer({ height, span }: { height: number; span: number }) {
  if (height <= 0) return null;

  return (
    <tr className="spacer" aria-hidden="true">
      <td colSpan={span} style={{ height }} />
    </tr>
  );
}
