// A unified diff with highlighting. What a file holds is only ever put into text nodes.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import bash from "highlight.js/lib/languages/bash";
import cLanguage from "highlight.js/lib/languages/c";
import css from "highlight.js/lib/languages/css";
import goLanguage from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import { bytes, count, visible } from "./format";
import type { Citation, Diff as Changes, DiffLine as Line, FileChange } from "./types";
import { Name } from "./ui";

const languages = createLowlight({
  bash,
  c: cLanguage,
  css,
  go: goLanguage,
  java,
  javascript,
  json,
  markdown,
  python,
  ruby,
  rust,
  sql,
  typescript,
  xml,
  yaml,
});

// A map, because an agent may call a file x.constructor.
const byExtension = new Map(Object.entries({
  sh: "bash", bash: "bash", c: "c", h: "c", cc: "c", cpp: "c", css: "css", go: "go", java: "java", kt: "java",
  js: "javascript", mjs: "javascript", cjs: "javascript", jsx: "javascript", json: "json", md: "markdown", py: "python", rb: "ruby", rs: "rust",
  sql: "sql", ts: "typescript", tsx: "typescript", html: "xml", xml: "xml", svg: "xml", yaml: "yaml", yml: "yaml",
})); // prettier-ignore

interface Node {
  type: string;
  value?: string;
  properties?: { className?: string[] };
  children?: Node[];
}

/** The language of a file, or the one that a block of Markdown names. */
export function languageOf(name: string): string | undefined {
  const known = byExtension.get(name.split(".").pop() ?? "");
  return known ?? (languages.registered(name) ? name : undefined);
}

/** A piece of code with its tokens. */
export function Highlighted(props: { text: string; language?: string; most: number }): JSX.Element {
  const text = visible(props.text);
  if (!props.language || text.length > props.most) return <>{text}</>;
  return <>{children(languages.highlight(props.language, text) as Node)}</>;
}

function children(node: Node): ComponentChildren {
  if (node.type === "text") return node.value;
  const inner = (node.children ?? []).map(children);
  const name = node.properties?.className?.join(" ");
  return name ? <span class={name}>{inner}</span> : inner;
}

const firstLines = 400;
// A longer line is not worth the time, and is shown plain.
const longLine = 500;

export function Diff(props: { diff: Changes; citations?: Citation[] }): JSX.Element {
  const files = props.diff.changes;
  if (files.length === 0 && props.diff.bytes === 0) return <p class="soft">The agent changed no file.</p>;
  return (
    <div class="diff">
      {files.map((f, i) => (
        <FileDiff key={i} file={f} citations={(props.citations ?? []).filter((c) => c.file === f.name)} open={files.length <= 5 || i === 0} />
      ))}
      {props.diff.cut && <p class="soft">Only the first part of {bytes(props.diff.bytes)} is shown.</p>}
    </div>
  );
}

function FileDiff(props: { file: FileChange; citations: Citation[]; open: boolean }): JSX.Element {
  const { file } = props;
  const [whole, setWhole] = useState(false);
  const [open, setOpen] = useState(props.open);
  const language = languageOf(file.name);
  const cited = (l: Line): Citation | undefined =>
    props.citations.find((c) => (c.line < 0 ? l.sign === "-" && l.before === -c.line : l.after === c.line));
  const all = file.lines;
  const lines = whole ? all : all.slice(0, firstLines);
  return (
    <details open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <code>
          <Name text={file.name || "patch"} max={90} />
        </code>{" "}
        <span class="pass-text">+{file.added}</span> <span class="fail-text">−{file.removed}</span>
      </summary>
      {open && (
        <div class="code" role="region" aria-label={visible("Changes of " + file.name)} tabIndex={0}>
          {all.length === 0 && <pre class="soft">{visible(file.note)}</pre>}
          {lines.map((l, i) => (
            <DiffLine key={i} line={l} language={language} cited={cited(l)} />
          ))}
          {lines.length < all.length && (
            <button type="button" onClick={() => setWhole(true)}>
              show {count(all.length - lines.length, "more line")}
            </button>
          )}
        </div>
      )}
    </details>
  );
}

const kinds: Record<Line["sign"], string> = { "+": "added", "-": "removed", "@": "hunk", "\\": "hunk", " ": "" };

export function DiffLine(props: { line: Line; language?: string; cited?: Citation }): JSX.Element {
  const { line, cited } = props;
  const plain = line.sign === "@" || line.sign === "\\";
  return (
    <div class={"line " + kinds[line.sign] + (cited ? " cited" : "")} title={cited ? visible("A judge cites this line: " + cited.text) : undefined}>
      <span class="at">{line.before ?? ""}</span>
      <span class="at">{line.after ?? ""}</span>
      <span class="sign">{plain ? "" : line.sign}</span>
      <code>{plain ? visible(line.text) : <Highlighted text={line.text} language={props.language} most={longLine} />}</code>
      {cited && <span class="hidden-text">cited by a judge</span>}
    </div>
  );
}
