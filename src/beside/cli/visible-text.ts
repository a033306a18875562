/**
 * Text that a pod chose (messages, names of images, logs) must not tell a terminal what to do, nor show itself in another
 * order than it has: control characters, those that turn the direction of writing, and invisible tags are spelt out.
 * Line ends and tabs stay.
 */
export function visible(text: string): string {
  return text.replace(unseen, spelt);
}

/** For where a line end, too, would be taken for something that we say: cells of tables, names. */
export function visibleLine(text: string): string {
  return visible(text).replace(/[\t\n]/g, spelt);
}

/** JSON in which nothing but plain characters is written as it is; for programs it says the same. */
export function visibleJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, undefined, indent).replace(unseen, (character) =>
    Array.from({ length: character.length }, (_, unit) => {
      return `\\u${character.charCodeAt(unit).toString(16).padStart(4, "0")}`;
    }).join(""),
  );
}

/** YAML in which such characters stand in double quotes only: there, in the words that every reader of YAML knows. */
export function visibleYaml(text: string): string {
  return text.replace(unseen, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const isFar = code > 0xffff;
    return `${isFar ? "\\U" : "\\u"}${code.toString(16).padStart(isFar ? 8 : 4, "0")}`;
  });
}

/**
 * C0 but tab and line end, DEL and C1, marks and turns of direction, separators of lines, tags, and what takes no room;
 * joiners stay, without which some scripts and signs fall apart. The dashboard's page has the same (a test holds it): it
 * can't load anything of the agent's.
 */
const unseen =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

function spelt(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return `^${String.fromCharCode(code + 0x40)}`;
  if (code === 0x7f) return "^?";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}
