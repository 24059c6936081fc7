// The start of a JSON document that was cut off, as by a crash of the program that wrote it.

/** Returns the document without its incomplete last value, and closes what is open; undefined if nothing is left. */
export function salvaged(text: string): unknown {
  const open: string[] = [];
  // The end of the last complete element of a list, and what is open there.
  let end = 0;
  let closing = "";
  for (let place = 0; place < text.length; place++) {
    const character = text[place]!;
    if (character === '"') {
      place = endOfText(text, place);
    } else if (character === "{" || character === "[") {
      open.push(character === "{" ? "}" : "]");
      if (character === "[" && open.length <= DEEPEST) [end, closing] = [place + 1, closingOf(open)];
    } else if (character === "}" || character === "]") {
      if (open.pop() !== character) return undefined;
      if (open.length > 0 && open.length <= DEEPEST && open.at(-1) === "]") [end, closing] = [place + 1, closingOf(open)];
    }
  }
  if (end === 0) return undefined;
  try {
    return JSON.parse(text.slice(0, end) + closing);
  } catch {
    return undefined;
  }
}

/** Lists inside of events are no places to cut: the file, its traces, a trace and its events are this deep. */
const DEEPEST = 4;

const closingOf = (open: readonly string[]): string => [...open].reverse().join("");

/** Returns the place of the quote that ends a text. */
function endOfText(text: string, start: number): number {
  for (let place = start + 1; place < text.length; place++) {
    if (text[place] === "\\") place++;
    else if (text[place] === '"') return place;
  }
  return text.length;
}
