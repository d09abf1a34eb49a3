import type { JSX } from "preact";

export function SideBySidePage(_: { a: string; b: string }): JSX.Element {
  return <main id="content" />;
}
