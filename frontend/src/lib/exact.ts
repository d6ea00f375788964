/**
 * Numbers of JSON that a script would change (9007199254740993, 1.0) are read as a
 * text that begins with a character which no text of the API holds: PostgreSQL
 * stores no zero character.
 */
const MARK = "\0";

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** readExact reads JSON and keeps each number as it was written. */
export function readExact(text: string): unknown {
  return JSON.parse(
    text.replace(TOKENS, (token) =>
      token.startsWith('"') || String(Number(token)) === token ? token : JSON.stringify(MARK + token),
    ),
  );
}

/** writeExact writes what readExact read, with each number as it was. */
export function writeExact(value: unknown): string {
  return JSON.stringify(value).replace(/"\\u0000([^"]*)"/g, "$1");
}

/** exactNumber is a kept number as it was written; undefined = it is none. */
export function exactNumber(text: string): string | undefined {
  return text.startsWith(MARK) ? text.slice(1) : undefined;
}
