import type { JSX } from "preact";

export function CellPage(_: { id: string; task: string; arm: string; run: string }): JSX.Element {
  return <main id="content" />;
}
