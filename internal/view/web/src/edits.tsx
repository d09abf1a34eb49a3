// Calls that change a file, as the difference that they make.
import type { JSX } from "preact";
import { DiffLine, languageOf } from "./diff";
import type { DiffLine as Line } from "./types";

const most = 400;

/** What the arguments of a call change: pairs of old and new text, a whole file, or a patch; null where they change nothing. */
export function changesIn(input: unknown): { name: string; lines: Line[]; fields: string[] } | null {
  if (!isObject(input)) return null;
  const name = text(input, "file_path", "path", "filePath") ?? "";
  const patch = text(input, "patch", "input");
  if (patch?.startsWith("*** Begin Patch")) return { name, lines: patchLines(patch), fields: ["patch", "input"] };
  const edits = Array.isArray(input.edits) ? input.edits.filter(isObject) : [input];
  const pairs = edits.map((e) => [text(e, "old_string", "oldText", "old_str"), text(e, "new_string", "newText", "new_str")] as const);
  if (pairs.length && pairs.every(([before, after]) => before !== undefined && after !== undefined)) {
    return { name, lines: pairs.flatMap(([before, after]) => lineDiff(before ?? "", after ?? "")), fields: [...changing, "edits"] };
  }
  const content = name ? text(input, "content", "file_text") : undefined;
  return content === undefined ? null : { name, lines: lineDiff("", content), fields: ["content", "file_text"] };
}

const changing = ["old_string", "oldText", "old_str", "new_string", "newText", "new_str"];

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(from: Record<string, unknown>, ...names: string[]): string | undefined {
  for (const name of names) if (Object.hasOwn(from, name) && typeof from[name] === "string") return from[name];
  return undefined;
}

function patchLines(patch: string): Line[] {
  return patch.split("\n").map((l) => (l[0] === "+" || l[0] === "-" || l[0] === " " ? { sign: l[0], text: l.slice(1) } : { sign: "@", text: l }));
}

function linesOf(text: string): string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}

/** Two texts line by line: what both begin and end with, and between the longest lines in common. */
export function lineDiff(before: string, after: string): Line[] {
  let [a, b] = [linesOf(before), linesOf(after)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const same = (list: string[]): Line[] => list.map((text) => ({ sign: " ", text }));
  const [first, last] = [a.slice(0, head), a.slice(a.length - tail)];
  [a, b] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  return [...same(first), ...between(a, b), ...same(last)];
}

function between(a: string[], b: string[]): Line[] {
  const removed = a.map((text): Line => ({ sign: "-", text }));
  const added = b.map((text): Line => ({ sign: "+", text }));
  if (!a.length || !b.length || a.length * b.length > most * most) return [...removed, ...added];
  // How many lines the rest of both has in common, from each place on.
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) (common[i] as Uint16Array)[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ sign: " ", text: a[i] as string });
      [i, j] = [i + 1, j + 1];
    } else if (at(i + 1, j) >= at(i, j + 1)) lines.push(removed[i++] as Line);
    else lines.push(added[j++] as Line);
  }
  return [...lines, ...removed.slice(i), ...added.slice(j)];
}

export function EditView(props: { name: string; lines: Line[]; limit: number }): JSX.Element {
  const language = languageOf(props.name);
  return (
    <div class="code edit" role="region" aria-label="The change" tabIndex={0}>
      {props.lines.slice(0, props.limit).map((l, i) => (
        <DiffLine key={i} line={l} language={language} />
      ))}
    </div>
  );
}
