import type { JSX } from "preact";

export function VersusPage(_: { id: string }): JSX.Element {
  return <main id="content" />;
}
