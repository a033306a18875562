// Everything that comes from pods is written by others, who may want to be taken for somebody else: characters that turn
// the direction of text, hide, or command a terminal are shown as what they are.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about.
const controls = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const deceiving =
  /[\u0080-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

export function madeVisible(text: string): string {
  return text.replace(controls, caretOf).replace(deceiving, codeOf);
}

/** As the commands and terminals write them: ^[ for escape. The pictures of Unicode are in few fonts. */
function caretOf(character: string): string {
  return `^${String.fromCharCode(character.charCodeAt(0) ^ 0x40)}`;
}

function codeOf(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** JSON of the agent, with every text in it made visible: there is no other way for texts to come in. */
export function parseVisible<Value>(json: string): Value {
  return JSON.parse(json, (_, value) => (typeof value === "string" ? madeVisible(value) : value));
}
