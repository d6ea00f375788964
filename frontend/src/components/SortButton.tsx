import { ordered, turned } from "@/lib/trials";

interface Props<Sort extends string> {
  text: string;
  /** first is the order that the first press asks for. */
  first: Sort;
  sort: Sort;
  onSort: (sort: Sort) => void;
}

/** The heading of a column that the server can sort by. */
export function SortButton<Sort extends string>({ text, first, sort, onSort }: Props<Sort>) {
  const now = ordered(sort, first.replace(/^-/, ""));

  return (
    <button type="button" className="sort" onClick={() => onSort(turned(sort, first))}>
      {text} <span aria-hidden="true">{now === "ascending" ? "↑" : now === "descending" ? "↓" : ""}</span>
    </button>
  );
}
