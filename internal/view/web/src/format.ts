// How numbers, times and names are shown. "unknown" and 0 never look alike.

export const unknown = "unknown";
const thin = "\u2009";

/** Dollars with cents under 10 and without above; amounts under a cent keep two digits. */
export function money(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return unknown;
  if (usd === 0) return "$0.00";
  if (usd < 0.01) return "$" + usd.toPrecision(2);
  if (usd < 1) return "$" + usd.toFixed(usd < 0.1 ? 3 : 2);
  return usd < 10 ? "$" + usd.toFixed(2) : "$" + whole(Math.round(usd));
}

/** Money where no column says what it is. */
export function spent(usd: number | null | undefined): string {
  return usd === null || usd === undefined ? "cost unknown" : money(usd);
}

/** A whole number with thin spaces between thousands. */
export function whole(n: number | null | undefined): string {
  if (n === null || n === undefined) return unknown;
  return String(Math.round(n)).replace(/\B(?=(\d{3})+(?!\d))/g, thin);
}

/** Tokens in short: 950, 12.3K, 4.5M. */
export function short(n: number | null | undefined): string {
  if (n === null || n === undefined) return unknown;
  if (n < 1000) return String(n);
  return n < 1e6 ? (n / 1e3).toFixed(1) + "K" : (n / 1e6).toFixed(1) + "M";
}

/** 1.2 s, 3 m 20 s, 1 h 05 m. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return unknown;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} m`;
}

function two(n: number): string {
  return String(n).padStart(2, "0");
}

/** A rate as percent with one decimal. */
export function percent(rate: number | null | undefined): string {
  return rate === null || rate === undefined ? unknown : (100 * rate).toFixed(1) + "%";
}

/** A difference of rates in points, always with its sign. */
export function points(difference: number | null | undefined, digits = 1): string {
  if (difference === null || difference === undefined) return unknown;
  const text = (100 * difference).toFixed(digits);
  if (Number(text) === 0) return (0).toFixed(digits);
  return difference > 0 ? "+" + text : text.replace("-", "\u2212");
}

export function factor(n: number | null | undefined): string {
  return n === null || n === undefined ? unknown : "×" + n.toFixed(2);
}

export function pValue(p: number | null | undefined): string {
  if (p === null || p === undefined) return unknown;
  return p < 0.001 ? "p < 0.001" : "p = " + p.toFixed(p < 0.01 ? 4 : 3);
}

export function count(n: number, what: string, many = what + "s"): string {
  return n === 1 ? `1 ${what}` : `${whole(n)} ${many}`;
}

export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return unknown;
  if (n < 1024) return `${n} B`;
  if (n < 1024 * 1024) return `${(n / 1024).toFixed(1)} KB`;
  return n < 1024 ** 3 ? `${(n / 1024 ** 2).toFixed(1)} MB` : `${(n / 1024 ** 3).toFixed(2)} GB`;
}

export function ago(ms: number | null | undefined, now = Date.now()): string {
  if (!ms) return unknown;
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  const days = Math.floor(seconds / 86_400);
  return days < 60 ? count(days, "day") + " ago" : absolute(ms).slice(0, 10);
}

/** The end of the calendar: files from elsewhere may name any time. */
const latest = 8.64e15;

export function absolute(ms: number | null | undefined): string {
  if (!ms || Math.abs(ms) > latest) return unknown;
  return new Date(ms).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}

/** Cuts a long name in the middle: both ends of a name tell names apart. */
export function cutMiddle(text: string, max: number): string {
  const letters = Array.from(text);
  if (letters.length <= max) return text;
  const head = Math.ceil((max - 1) / 2);
  return letters.slice(0, head).join("") + "…" + letters.slice(letters.length - (max - 1 - head)).join("");
}

// What a terminal or a browser would obey or hide: control characters, marks that reorder text,
// characters without width, separators.
const hidden =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Shows hidden characters as escapes, in the notation of Go's strings, as the commands do. */
export function visible(text: string): string {
  if (text.search(hidden) < 0) return text;
  return text.replace(/\r\n/g, "\n").replace(hidden, (c) => {
    const code = c.codePointAt(0) as number;
    if (code < 0x80) return c === "\r" ? "\\r" : "\\x" + code.toString(16).padStart(2, "0");
    if (code > 0xffff) return "\\U" + code.toString(16).padStart(8, "0");
    return "\\u" + code.toString(16).padStart(4, "0");
  });
}

/** A sentence of the commands with the minus sign of print, where theirs have a hyphen. */
export function prose(text: string): string {
  return visible(text).replace(/(^|[\s([])-(?=\d)/g, "$1\u2212");
}

export function upper(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
