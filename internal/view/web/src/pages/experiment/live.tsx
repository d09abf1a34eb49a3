// A running experiment: where it is, what it costs, and the buttons that control it.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { asFailure, post, url } from "../../api";
import { ago, count, cutMiddle, duration, money, visible, whole } from "../../format";
import type { CellId, Status } from "../../types";
import { Link, Mark, Name, Scroll } from "../../ui";

export function LiveLine(props: { status: Status }): JSX.Element {
  const s = props.status;
  const facts = [
    `${whole(s.done)} of ${whole(s.total)}`,
    money(s.costUsd),
    s.burnUsdPerHour === null ? "" : `${money(s.burnUsdPerHour)} an hour`,
    left(s),
  ].filter(Boolean);
  return (
    <span class="live-line" role="status">
      <span class={s.state === "running" ? "running-text" : "soft"}>● {s.state === "running" ? "live" : s.state}</span>
      <span> · {facts.join(" · ")}</span>
    </span>
  );
}

function left(s: Status): string {
  if (!s.leftMs || s.state !== "running") return ""; // what is paused ends when somebody resumes it
  const { est, lo, hi } = s.leftMs;
  if (lo === null || hi === null) return duration(est) + " left";
  const minutes = (ms: number): number => Math.max(1, Math.round(ms / 60_000));
  if (hi < 120_000) return `${Math.round(lo / 1000)}–${Math.round(hi / 1000)} s left`;
  return minutes(lo) === minutes(hi) ? `${minutes(lo)} min left` : `${minutes(lo)}–${minutes(hi)} min left`;
}

interface ControlProps {
  id: string;
  status: Status;
  onStatus: (status: Status) => void;
}

type Answer = { status: Status; message: string };

function useControl(props: ControlProps): { send: (body: object) => Promise<void>; said: string } {
  const [said, setSaid] = useState("");
  async function send(body: object): Promise<void> {
    try {
      const answer = await post<Answer>(url(`experiments/${encodeURIComponent(props.id)}/ctl`), body);
      props.onStatus(answer.status);
      setSaid(answer.message);
    } catch (e) {
      const f = asFailure(e);
      setSaid(f.hint ? `${f.message}; ${f.hint}` : f.message);
    }
  }
  return { send, said };
}

export function Controls(props: ControlProps): JSX.Element {
  const { send, said } = useControl(props);
  const s = props.status;
  return (
    <span class="controls no-print">
      {s.state === "paused" ? (
        <button type="button" onClick={() => send({ action: "resume" })}>
          resume
        </button>
      ) : (
        <button type="button" disabled={s.state !== "running"} onClick={() => send({ action: "pause" })}>
          pause
        </button>
      )}
      <Setting
        label="concurrency"
        value={s.concurrency}
        show={whole}
        read={(text) => (/^[1-9]\d{0,3}$/.test(text) ? Number(text) : "concurrency is a number of cells, 1 or more")}
        set={(n) => send({ action: "concurrency", n })}
        doubt={(n) => (n !== null && n > s.total - s.done ? `only ${count(s.total - s.done, "cell")} left` : "")}
      />
      <Setting
        label="budget $"
        value={s.budgetUsd}
        show={(usd) => (usd === null ? "no limit" : money(usd))}
        read={(text) => (/^(\d+\.?\d*|\.\d+)$/.test(text) && Number(text) > 0 ? Number(text) : "the budget is an amount of dollars; “no limit” takes it away")}
        set={(usd) => send({ action: "budget", usd: usd ?? 0 })}
        doubt={(usd) => (usd !== null && usd <= s.costUsd ? `${money(s.costUsd)} are spent: no further cell starts` : "")}
        none="no limit"
      />
      <span class="soft said" role="status" title={visible(said)}>
        {visible(cutMiddle(said, 60))}
      </span>
    </span>
  );
}

interface SettingProps {
  label: string;
  value: number | null;
  show: (value: number | null) => string;
  /** The number that a text means, or what is wrong with it. */
  read: (text: string) => number | string;
  set: (value: number | null) => Promise<void>;
  /** What whoever confirms a value must know about it; empty is nothing. */
  doubt: (value: number | null) => string;
  /** The button that takes the limit away. */
  none?: string;
}

/** A number of a running experiment. What is typed is a draft: it changes nothing until it has been confirmed. */
function Setting(props: SettingProps): JSX.Element {
  const [draft, setDraft] = useState<string | null>(null);
  const [asked, setAsked] = useState<{ from: number | null; to: number | null } | null>(null);
  const [wrong, setWrong] = useState("");
  const back = useRef(false); // to the field, whose buttons are gone
  const drop = (): void => {
    back.current = true;
    setDraft(null);
    setAsked(null);
    setWrong("");
  };
  const ask = (to: number | null | string): void => {
    if (typeof to === "string") return setWrong(to);
    if (to === props.value) return drop();
    setWrong("");
    setAsked({ from: props.value, to });
  };
  if (asked) {
    const change = async (): Promise<void> => {
      drop();
      await props.set(asked.to);
    };
    return (
      <span class="setting" role="group" aria-label={`Change ${props.label}`} onKeyDown={(e) => e.key === "Escape" && drop()}>
        <span>
          {props.label}: {props.show(asked.from)} → <strong>{props.show(asked.to)}</strong>?
          {props.doubt(asked.to) && <span class="fail-text"> {props.doubt(asked.to)}</span>}
        </span>
        <button type="button" ref={focus} onClick={() => void change()}>
          change
        </button>{" "}
        <button type="button" onClick={drop}>
          keep
        </button>
      </span>
    );
  }
  return (
    <form
      class="setting"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        if (draft !== null) ask(props.read(draft.trim()));
      }}
      onKeyDown={(e) => e.key === "Escape" && drop()}
    >
      <label>
        {props.label}{" "}
        <input
          type="text"
          inputMode="decimal"
          size={5}
          autocomplete="off"
          placeholder="none"
          aria-invalid={wrong !== ""}
          ref={(field) => {
            if (!field) return;
            if (back.current) field.focus();
            back.current = false;
          }}
          value={draft ?? props.value ?? ""}
          onInput={(e) => setDraft(e.currentTarget.value)}
        />
      </label>
      {draft !== null && <button type="submit">set</button>}
      {draft !== null && (
        <button type="button" onClick={drop}>
          keep
        </button>
      )}
      {props.none && draft === null && props.value !== null && (
        <button type="button" onClick={() => ask(null)}>
          {props.none}
        </button>
      )}
      {wrong && <span class="fail-text" role="alert">{wrong}</span>}
    </form>
  );
}

function focus(button: HTMLElement | null): void {
  button?.focus();
}

export function RunningCells(props: ControlProps): JSX.Element {
  const { send, said } = useControl(props);
  return (
    <section class="running-cells" aria-label="Running cells">
      <Scroll>
        <table>
          <thead>
            <tr>
              <th scope="col">running</th>
              <th scope="col">last action</th>
              <th scope="col" class="num">
                for
              </th>
              <th scope="col" class="num">
                entries
              </th>
              <th scope="col">
                <span class="hidden-text">control</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {(props.status.running ?? []).map((c) => (
              <tr key={`${c.task}/${c.arm}/${c.run}`}>
                <td>
                  <Mark outcome="running" label="" />{" "}
                  <Link to={["x", props.id, c.task, c.arm, c.run]}>
                    <Name text={`${c.task} ▸ ${c.arm} ▸ run ${c.run}`} max={48} />
                  </Link>
                  {c.attempt > 1 && <span class="soft"> attempt {c.attempt}</span>}
                </td>
                <td class="mono">
                  <div class="action">{visible(cutMiddle(c.lastAction, 80)) || <span class="soft">nothing yet</span>}</div>
                  {c.stalled && <div class="fail-text">stalled, last entry {ago(c.lastActionMs)}</div>}
                </td>
                <td class="num">{duration(c.elapsedMs)}</td>
                <td class="num">{whole(c.entries)}</td>
                <td>{props.status.controllable && <Act name="cancel" cell={c} send={send} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {said && <p role="status">{visible(said)}</p>}
    </section>
  );
}

function Act(props: { name: "cancel" | "requeue"; cell: CellId; send: (body: object) => Promise<void> }): JSX.Element {
  const { task, arm, run } = props.cell;
  return (
    <button
      type="button"
      class="no-print"
      aria-label={visible(`${props.name} ${task}, ${arm}, run ${run}`)}
      onClick={() => props.send({ action: props.name, task, arm, run })}
    >
      {props.name}
    </button>
  );
}

/** The buttons of one cell on its own page. */
export function CellControls(props: ControlProps & { cell: CellId & { state: string } }): JSX.Element | null {
  const { send, said } = useControl(props);
  const { state } = props.cell;
  const held = (props.status.held ?? []).some((c) => c.task === props.cell.task && c.arm === props.cell.arm && c.run === props.cell.run);
  if (!props.status.controllable || state === "pass" || state === "fail") return null;
  return (
    <span class="controls no-print">
      {held || state === "error" ? <Act name="requeue" cell={props.cell} send={send} /> : <Act name="cancel" cell={props.cell} send={send} />}
      <span class="soft" role="status">
        {visible(said)}
      </span>
    </span>
  );
}
