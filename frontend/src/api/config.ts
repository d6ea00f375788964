/** Settings that the server wrote into the page: the path under which it serves. */
export interface PageConfig {
  base: string;
}

export function readConfig(doc: Document = document): PageConfig {
  const text = doc.getElementById("berth-config")?.textContent ?? "{}";
  const parsed: unknown = JSON.parse(text);
  const base =
    typeof parsed === "object" && parsed !== null && "base" in parsed && typeof parsed.base === "string"
      ? parsed.base
      : "/";

  return { base: base.endsWith("/") ? base : `${base}/` };
}

/** apiUrl is where the API is: below the base path, on the same origin. */
export function apiUrl(path: string): string {
  return `${readConfig().base}api/v1${path}`;
}
