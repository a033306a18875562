/**
 * "3 min" is true when it is read; who pastes it somewhere wants the time itself. While a selection is copied, every time
 * in it says what it shows when it is pointed at. The browser itself puts the text together, with its lines and cells.
 */
export function copyAbsoluteTimes(): void {
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    const { target, clipboardData } = event;
    if (selection === null || selection.isCollapsed || clipboardData === null) return;
    if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) return;
    const times = [...document.querySelectorAll("time")].filter((time) => selection.containsNode(time, true));
    if (times.length === 0) return;
    clipboardData.setData("text/plain", textWith(times, selection));
    event.preventDefault();
  });
}

/** The selected text as if the times were written out; the page is afterwards as it was, before anybody saw it. */
function textWith(times: readonly HTMLTimeElement[], selection: Selection): string {
  const { anchorNode, anchorOffset, focusNode, focusOffset } = selection;
  const range = selection.getRangeAt(0).cloneRange();
  for (const time of times) {
    // Of one that is selected in part, the whole.
    if (time.contains(range.startContainer)) range.setStartBefore(time);
    if (time.contains(range.endContainer)) range.setEndAfter(time);
  }
  const swapped: { readonly text: Text; readonly was: string }[] = [];
  try {
    for (const time of times) {
      const [first, ...others] = [...time.childNodes].filter((node) => node instanceof Text);
      for (const text of [first, ...others]) if (text !== undefined) swapped.push({ text, was: text.data });
      if (first !== undefined) first.data = time.title;
      for (const other of others) other.data = "";
    }
    selection.removeAllRanges();
    selection.addRange(range);
    return selection.toString();
  } finally {
    for (const { text, was } of swapped) text.data = was;
    if (anchorNode !== null && focusNode !== null) {
      selection.setBaseAndExtent(anchorNode, anchorOffset, focusNode, focusOffset);
    }
  }
}
