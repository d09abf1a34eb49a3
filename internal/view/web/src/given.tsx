// What reached the model of one run: files of the project and of the arm, and what comes with the agent.
import type { JSX } from "preact";
import { count, percent, visible, whole } from "./format";
import type { Given, GivenPiece } from "./types";
import { Name, Scroll } from "./ui";

const kinds: Record<string, string> = { agent: "sub-agent", mcp: "tool server" };
const sources: Record<string, string> = { arm: "the arm", family: "the family", task: "the task" };

export function GivenToModel(props: { given?: Given; notStarted?: boolean }): JSX.Element {
  const { given } = props;
  if (props.notStarted) return <p class="soft">Nothing: the agent was not started.</p>;
  if (!given) return <p class="soft">Unknown: this run was recorded by an earlier version, which did not look.</p>;
  const pieces = given.pieces ?? [];
  return (
    <>
      {given.unknown && <p>{visible(`Unknown: ${given.unknown}`)}</p>}
      {!pieces.length && !given.unknown && <p class="soft">The arm, the family and the task's files bring nothing that an agent reads by itself.</p>}
      {pieces.length > 0 && <Pieces list={pieces} />}
      {facts(given).map((line) => (
        <p key={line} class="soft">
          {visible(line)}
        </p>
      ))}
    </>
  );
}

function Pieces(props: { list: GivenPiece[] }): JSX.Element {
  return (
    <Scroll>
      <table class="given">
        <thead>
          <tr>
            {["what", "from", "given", "where", "opened"].map((h) => (
              <th key={h} scope="col">
                {h}
              </th>
            ))}
            <th scope="col" class="num">
              tokens per call
            </th>
          </tr>
        </thead>
        <tbody>
          {props.list.map((p) => (
            <tr key={`${p.kind} ${p.name} ${p.path ?? ""}`}>
              <td>
                {visible(kinds[p.kind] ?? p.kind)} {p.name !== p.kind && <Name text={p.name} max={60} />}
              </td>
              <td>
                {sources[p.from] ?? visible(p.from)} {p.path && p.path !== p.name && <span class="soft">{visible(p.path)}</span>}
              </td>
              <td>{visible(grade(p))}</td>
              <td>{visible(p.where ?? "–")}</td>
              <td>{p.opened === undefined ? "–" : p.opened ? "opened" : "not opened"}</td>
              <td class="num">{p.tokens ? whole(p.tokens) : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function grade(p: GivenPiece): string {
  const word = p.given === "part" ? `part (${percent(p.share ?? 0)})` : p.given === "name" ? "name only" : p.given;
  return p.why ? `${word}: ${p.why}` : word;
}

function facts(g: Given): string[] {
  const lines: string[] = [];
  for (const s of g.served ?? []) lines.push(`Served by ${s.model} in ${count(s.calls, "call")}${s.asked && s.asked !== s.model ? `, asked for as ${s.asked}` : ""}.`);
  if (g.programs?.length) lines.push(`Files that let the agent run programs of the project: ${g.programs.join(", ")}.`);
  if (g.managed?.length) lines.push(`Files of the administrator that the agent may have read: ${g.managed.join(", ")}.`);
  return lines;
}
