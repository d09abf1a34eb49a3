import type { JSX } from "preact";

export function TracePage(_: { trace: string }): JSX.Element {
  return <main id="content" />;
}
