import { moment, zoned } from "@/lib/format";

/** A date and time in the reader's zone, which the title names. */
export function When({ at }: { at: string }) {
  return (
    <time dateTime={at} title={zoned(at)}>
      {moment(at)}
    </time>
  );
}
