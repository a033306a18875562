/** A piece of a line in one colour. */
export interface Coloured {
  readonly text: string;
  /** As the terminal numbers them, 30 to 37 and 90 to 97; undefined: as usual. */
  readonly colour: number | undefined;
  readonly isBold: boolean;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: this is how terminals are told of colours.
const selection = /\u001b\[([\d;]{0,20})m/;

/** What a line means to a terminal, as far as colours go; everything else that it commands stays as it is. */
export function colouredPieces(line: string): readonly Coloured[] {
  const pieces: Coloured[] = [];
  let colour: number | undefined;
  let isBold = false;
  const parts = line.split(selection);
  for (const [index, part] of parts.entries()) {
    if (index % 2 === 0) {
      if (part !== "") pieces.push({ text: part, colour, isBold });
      continue;
    }
    for (const code of part.split(";").map(Number)) {
      if (code === 0) [colour, isBold] = [undefined, false];
      else if (code === 1) isBold = true;
      else if (code === 22) isBold = false;
      else if (code === 39) colour = undefined;
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) colour = code;
    }
  }
  return pieces;
}
