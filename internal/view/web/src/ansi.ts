// The colours of terminals. Only colours and weights are followed; every other sequence stays a visible escape.
export interface Coloured {
  text: string;
  name: string;
}

// eslint-disable-next-line no-control-regex
const sequence = /\u001b\[([0-9;]{0,40})m/g;
const longest = 5000;

/** Splits a text into parts of one look. */
export function coloured(text: string): Coloured[] {
  const parts: Coloured[] = [];
  let from = 0;
  let look: { colour?: number; bold?: boolean; faint?: boolean } = {};
  const add = (part: string): void => {
    if (!part) return;
    const names = [look.colour === undefined ? "" : `ansi-${look.colour}`, look.bold ? "ansi-bold" : "", look.faint ? "soft" : ""];
    parts.push({ text: part, name: names.filter(Boolean).join(" ") });
  };
  for (const found of text.matchAll(sequence)) {
    if (parts.length >= longest) break;
    add(text.slice(from, found.index));
    from = found.index + found[0].length;
    look = apply(look, (found[1] ?? "").split(";").map(Number));
  }
  add(text.slice(from));
  return parts;
}

function apply<T extends { colour?: number; bold?: boolean; faint?: boolean }>(before: T, codes: number[]): T {
  const look = { ...before };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] as number;
    if (code === 0) [look.colour, look.bold, look.faint] = [undefined, false, false];
    else if (code === 1) look.bold = true;
    else if (code === 2) look.faint = true;
    else if (code === 22) [look.bold, look.faint] = [false, false];
    else if (code >= 30 && code <= 37) look.colour = code - 30;
    else if (code === 39) look.colour = undefined;
    else if (code >= 90 && code <= 97) look.colour = code - 90;
    else if (code === 38 || code === 48) i += codes[i + 1] === 2 ? 4 : 2; // a palette of its own is left out
  }
  return look;
}
