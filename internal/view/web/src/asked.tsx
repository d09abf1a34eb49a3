// What the agent was asked: the task, the system prompt with its parts, and the tools it was offered.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { bytes, count, visible, whole } from "./format";
import { Markdown } from "./markdown";
import type { Given } from "./types";
import { Prompts } from "./behind";
import { GivenToModel } from "./given";

const shortPrompt = 2000;

export function Asked(props: { trace?: string; prompt: string | null | undefined; given?: Given; notStarted?: boolean }): JSX.Element {
  const { trace, given } = props;
  return (
    <div class="asked">
      {props.prompt ? <Prompt key={trace} text={props.prompt} /> : props.prompt === null && <p class="soft">The trace holds no prompt of a task.</p>}
      {trace && <Prompts trace={trace} aside={given?.systemTokens ? `about ${count(given.systemTokens, "token")}, of which ${whole(given.vendorTokens ?? 0)} come with the agent` : ""} />}
      {given && <Tools given={given} />}
      <GivenToModel given={given} notStarted={props.notStarted} />
    </div>
  );
}

function Prompt(props: { text: string }): JSX.Element {
  const [all, setAll] = useState(props.text.length <= shortPrompt);
  return (
    <>
      <div class="task-prompt">
        <Markdown text={all ? props.text : props.text.slice(0, shortPrompt)} show={visible} />
      </div>
      {!all && (
        <button type="button" class="plain" onClick={() => setAll(true)}>
          show all {bytes(props.text.length)} of the prompt
        </button>
      )}
    </>
  );
}

function Tools(props: { given: Given }): JSX.Element | null {
  const { tools, toolTokens } = props.given;
  if (!tools?.length) return null;
  return (
    <details>
      <summary>
        {count(tools.length, "tool")} offered <span class="soft">{toolTokens ? `about ${count(toolTokens, "token")} per call` : ""}</span>
      </summary>
      <p>{visible(tools.join(", "))}</p>
    </details>
  );
}
