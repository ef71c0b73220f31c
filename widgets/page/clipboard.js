// The clipboard. Whoever may not use it (a frame, a page without TLS) gets the old way.

import { make } from "./nodes.js";

// Copy `text`; whether that was possible.
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", "", document.body);
    area.value = text;
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
