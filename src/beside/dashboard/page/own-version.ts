/** Whether the agent has other pages by now than the one that is open: another version has taken its place. */
export async function isOutdated(): Promise<boolean> {
  const own = new URL(import.meta.url).pathname.split("/").at(-1) ?? "";
  try {
    const response = await fetch("./", { cache: "no-store" });
    return response.ok && !(await response.text()).includes(own);
  } catch {
    return false;
  }
}
