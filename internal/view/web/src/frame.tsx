// What stands around every page: the bar with the path to here, the help, light and dark.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { command, frozen } from "./api";
import { absolute, count } from "./format";
import { bindings, helpOpen } from "./keys";
import { connected } from "./live";
import { hrefBack } from "./router";
import { Name } from "./ui";

export interface Crumb {
  text: string;
  to?: (string | number)[];
}

export function Bar(props: { crumbs: Crumb[]; children?: ComponentChildren }): JSX.Element {
  return (
    <header class="bar">
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <nav aria-label="Where this is">
        <ol class="crumbs">
          <li>
            <a href={hrefBack([])} class="brand">
              fit
            </a>
          </li>
          {props.crumbs.map((c) => (
            <li key={c.text}>{c.to ? <a href={hrefBack(c.to)}><Name text={c.text} max={48} /></a> : <Name text={c.text} max={48} />}</li>
          ))}
        </ol>
      </nav>
      <div class="row push">
        {props.children}
        <button type="button" class="plain no-print" onClick={nextTheme} title="Light, dark, or the same as the system">
          theme: {theme.value === "" ? "auto" : theme.value}
        </button>
        <button type="button" class="plain no-print" onClick={() => (helpOpen.value = true)} aria-label="Keyboard help">
          ?
        </button>
      </div>
      {!connected.value && (
        <p class="gone" role="alert">
          {command} does not answer, so this page no longer changes. Start it again, and open the address that it prints.
        </p>
      )}
    </header>
  );
}

// The address holds the page, so this link must move the focus and not the address.
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

const themes = ["", "light", "dark"];
const theme = signal(stored());

function stored(): string {
  try {
    return localStorage.getItem("theme") ?? "";
  } catch {
    return "";
  }
}

export function applyTheme(): void {
  if (theme.value) document.documentElement.dataset.theme = theme.value;
  else delete document.documentElement.dataset.theme;
}

function nextTheme(): void {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? "";
  try {
    localStorage.setItem("theme", theme.value);
  } catch {
    // A file that was opened from disk may have no storage; the choice then lasts as long as the page.
  }
  applyTheme();
}

export function Help(): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useEffect(() => {
    if (open && !ref.current?.open) ref.current?.showModal();
    if (!open && ref.current?.open) ref.current.close();
  }, [open]);
  const rows = new Map(bindings.value.map((b) => [b.keys, b.does]));
  return (
    <dialog ref={ref} onClose={() => (helpOpen.value = false)} aria-labelledby="help-title">
      <h2 id="help-title">Keys on this page</h2>
      <table>
        <tbody>
          {[...rows].map(([keys, does]) => (
            <tr key={keys}>
              <td>
                <kbd>{keys}</kbd>
              </td>
              <td>{does}</td>
            </tr>
          ))}
          <tr>
            <td>
              <kbd>?</kbd>
            </td>
            <td>show or hide this help</td>
          </tr>
          <tr>
            <td>
              <kbd>Esc</kbd>
            </td>
            <td>leave a field, close this</td>
          </tr>
        </tbody>
      </table>
      <p>
        <button type="button" onClick={() => (helpOpen.value = false)}>
          Close
        </button>
      </p>
    </dialog>
  );
}

/** How an exported page came to be. */
export function Origin(): JSX.Element | null {
  if (!frozen) return null;
  return (
    <footer class="origin soft">
      {frozen.command && (
        <p>
          Made by <code>{frozen.command}</code> {frozen.generatedMs ? "on " + absolute(frozen.generatedMs) : ""}
        </p>
      )}
      {frozen.cells ? <p>{count(frozen.cells, "cell")} have only their mark in the grid, to keep the file small; --max-bytes allows more.</p> : null}
      {frozen.leftOut ? <p>{count(frozen.leftOut, "transcript")} left out to keep the file small; --max-bytes allows more.</p> : null}
    </footer>
  );
}
