import type { JSX } from "preact";

export function ExperimentPage(_: { id: string }): JSX.Element {
  return <main id="content" />;
}
