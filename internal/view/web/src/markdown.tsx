// Markdown as people read it. What a model wrote is only ever put into text nodes: no link leads out of the page, no
// picture is fetched, and HTML is shown as it was written.
import { Scroll } from "./ui";
import type { ComponentChildren, JSX } from "preact";
import { Highlighted, languageOf } from "./diff";

/** How a piece of text is put into the page, such as with the hits of a search marked. */
export type Show = (text: string) => ComponentChildren;

const longestCode = 20_000;

export function Markdown(props: { text: string; show: Show }): JSX.Element {
  return <div class="prose markdown">{blocks(props.text.replace(/\r\n?/g, "\n").split("\n"), props.show)}</div>;
}

const fence = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const item = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const rule = /^ {0,3}([-*_])\s*(?:\1\s*){2,}$/;
const tableRule = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function blocks(lines: string[], show: Show, depth = 0): ComponentChildren[] {
  const list: ComponentChildren[] = [];
  let i = 0;
  const take = (holds: (line: string) => boolean): string[] => {
    const from = i;
    while (i < lines.length && holds(lines[i] as string)) i++;
    return lines.slice(from, i);
  };
  while (i < lines.length) {
    const line = lines[i] as string;
    const opened = fence.exec(line);
    const title = heading.exec(line);
    if (opened) {
      i++;
      const close = (opened[1] as string).slice(0, 3);
      const code = take((l) => !l.trimStart().startsWith(close)).join("\n");
      i++;
      list.push(<pre class="block">{opened[2] ? <Highlighted text={code} language={languageOf(opened[2])} most={longestCode} /> : show(code)}</pre>);
    } else if (title) {
      i++;
      list.push(<p class={"heading level-" + (title[1] as string).length}>{inline(title[2] as string, show)}</p>);
    } else if (rule.test(line)) {
      i++;
      list.push(<hr />);
    } else if (line.startsWith(">") && depth < 5) {
      list.push(<blockquote>{blocks(take((l) => l.startsWith(">")).map((l) => l.replace(/^> ?/, "")), show, depth + 1)}</blockquote>);
    } else if (item.test(line) && depth < 5) {
      const numbered = /\d/.test(item.exec(line)?.[2] ?? "");
      const indent = item.exec(line)?.[1]?.length ?? 0;
      const inside = take((l) => (item.exec(l)?.[1]?.length ?? -1) >= indent || (l.startsWith(" ".repeat(indent + 1)) && l.trim() !== ""));
      const items: string[][] = [];
      for (const l of inside) {
        const found = item.exec(l);
        if (found && found[1]?.length === indent) items.push([found[3] as string]);
        else items.at(-1)?.push(l.slice(Math.min(l.search(/\S/), indent + 2)));
      }
      const children = items.map((lines, n) => <li key={n}>{lines.length > 1 ? blocks(lines, show, depth + 1) : inline(lines[0] ?? "", show)}</li>);
      list.push(numbered ? <ol start={Number.parseInt(item.exec(line)?.[2] ?? "1", 10)}>{children}</ol> : <ul>{children}</ul>);
    } else if (line.includes("|") && tableRule.test(lines[i + 1] ?? "") && (lines[i + 1] ?? "").includes("-")) {
      const rows = take((l) => l.includes("|")).filter((_, n) => n !== 1);
      list.push(<Table rows={rows.map(cells)} show={show} />);
    } else if (line.trim() === "") {
      i++;
    } else {
      i++;
      const more = take((l) => l.trim() !== "" && !fence.test(l) && !heading.test(l) && !item.test(l) && !l.startsWith(">"));
      list.push(<p>{inline([line, ...more].join("\n"), show)}</p>);
    }
  }
  return list;
}

function cells(row: string): string[] {
  return row.trim().replace(/^\||\|$/g, "").split("|").map((c) => c.trim());
}

function Table(props: { rows: string[][]; show: Show }): JSX.Element {
  const [head = [], ...rows] = props.rows;
  return (
    <Scroll>
      <table>
        <thead>
          <tr>
            {head.map((c, i) => (
              <th key={i} scope="col">
                {inline(c, props.show)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {head.map((_, j) => (
                <td key={j}>{inline(row[j] ?? "", props.show)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

// Code, strong, emphasis, and links: the first that begins is taken.
const spans = /(`+)([^`]+)\1|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*)\*(?!\w)|!?\[([^\]\n]{1,500})\]\(([^)\s]{1,2000})\)/g;

function inline(text: string, show: Show): ComponentChildren[] {
  const list: ComponentChildren[] = [];
  let from = 0;
  for (const found of text.matchAll(spans)) {
    if (list.length > 2000) break;
    list.push(show(text.slice(from, found.index)));
    from = found.index + found[0].length;
    const [, , code, strong, emphasis, label, address] = found;
    if (code !== undefined) list.push(<code>{show(code)}</code>);
    else if (strong !== undefined) list.push(<strong>{show(strong)}</strong>);
    else if (emphasis !== undefined) list.push(<em>{show(emphasis)}</em>);
    else list.push(show(label ?? ""), <span class="soft"> ({show(address ?? "")})</span>);
  }
  return [...list, show(text.slice(from))];
}
