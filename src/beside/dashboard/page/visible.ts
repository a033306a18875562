// Everything that comes from pods is written by others, who may want to be taken for somebody else: characters that turn
// the direction of text, hide, or command a terminal are shown as what they are.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about.
const controls = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const deceiving =
  /[\u0080-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

export function madeVisible(text: string): string {
  return text.replace(controls, pictureOf).replace(deceiving, codeOf);
}

/** The pictures that Unicode has for control characters: ␛ for escape. */
function pictureOf(character: string): string {
  const code = character.charCodeAt(0);
  return code === 0x7f ? "␡" : String.fromCharCode(0x2400 + code);
}

function codeOf(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** JSON of the agent, with every text in it made visible: there is no other way for texts to come in. */
export function parseVisible<Value>(json: string): Value {
  return JSON.parse(json, (_, value) => (typeof value === "string" ? madeVisible(value) : value));
}
