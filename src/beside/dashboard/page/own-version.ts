/** Whether the agent has other pages by now than the one that is open: another version has taken its place. */
export async function isOutdated(): Promise<boolean> {
  // Named by the page: this very file may be bundled into another script.
  const script = document.querySelector<HTMLScriptElement>("script[type=module]");
  const own = new URL(script?.src ?? "", location.href).pathname.split("/").at(-1) ?? "";
  try {
    const response = await fetch("./", { cache: "no-store" });
    return response.ok && !(await response.text()).includes(own);
  } catch {
    return false;
  }
}
