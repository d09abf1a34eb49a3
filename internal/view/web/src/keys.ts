// The keyboard: one listener, and a table that each page fills while it is shown.
import { useLayoutEffect } from "preact/hooks";
import { signal } from "@preact/signals";

export interface Binding {
  keys: string;
  does: string;
  run: () => void;
}

export const bindings = signal<Binding[]>([]);
export const helpOpen = signal(false);

let pending = "";
let pendingTimer = 0;

/**
 * Adds keys while a component is shown. Two keys in a row are written with a space: "g g". The table is filled as
 * soon as the component is in the page: who types quickly has pressed the next key before it is painted.
 */
export function useKeys(list: Binding[], depends: unknown[]): void {
  useLayoutEffect(() => {
    bindings.value = [...bindings.peek(), ...list];
    return () => {
      bindings.value = bindings.peek().filter((b) => !list.includes(b));
    };
  }, depends);
}

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

/** Reports whether Enter means what has the focus, and not the page. */
function pressed(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("button, a[href], summary") !== null;
}

export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      helpOpen.value = false;
      if (typing(event.target)) (event.target as HTMLElement).blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "Enter" && pressed(event.target)) return;
    if (event.key === "?") {
      helpOpen.value = !helpOpen.value;
      event.preventDefault();
      return;
    }
    const wanted = pending ? `${pending} ${event.key}` : event.key;
    clearTimeout(pendingTimer);
    pending = "";
    const table = bindings.value;
    const found = table.findLast((b) => b.keys === wanted) ?? table.findLast((b) => b.keys === event.key);
    if (found) {
      event.preventDefault();
      found.run();
    } else if (table.some((b) => b.keys.startsWith(event.key + " "))) {
      pending = event.key;
      pendingTimer = window.setTimeout(() => (pending = ""), 1000);
    }
  });
}
