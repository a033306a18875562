/** JSON as Go writes it: the characters that matter to HTML and JavaScript are escaped. */
export function goJson(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
