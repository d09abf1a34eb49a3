import type { JSX } from "preact";

export function LabelsPage(_: { id: string }): JSX.Element {
  return <main id="content" />;
}
