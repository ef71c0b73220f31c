// A row of buttons, each for a file that is made when it is asked for. `names` are their words; a
// press goes out as `wanted` {place}, and `made` {name, place, data} comes back to be saved.

const LOOK = `
.downloads { display: flex; flex-wrap: wrap; gap: 6px; padding: 2px 0 6px; }
.downloads button { font: 13px var(--font); color: var(--ink); background: transparent; cursor: pointer;
  border: 1px solid transparent; border-radius: 6px; padding: 5px 10px; }
.downloads button::before { content: "↓"; margin-right: 6px; color: var(--faint); }
.downloads button:hover { background: var(--raised); }
.downloads button:focus-visible { outline: 2px solid var(--ink); }
.downloads button:disabled { color: var(--faint); cursor: progress; }`;

function render({ model, el }) {
  const style = document.createElement("style"), root = document.createElement("div");
  style.textContent = LOOK;
  root.className = "downloads";
  let count = 0;
  const buttons = model.get("names").map((name, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.onclick = () => {
      button.disabled = true;
      model.set("wanted", { place, count: ++count });
      model.save_changes();
    };
    return button;
  });
  root.append(...buttons);
  const save = () => {
    const { name, place, data } = model.get("made");
    if (!name) return;
    buttons[place].disabled = false;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([data]));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  const paint = () => {
    const colours = model.get("options")[model.get("is_dark") ? "dark" : "light"] || {};
    for (const [name, value] of Object.entries(colours)) root.style.setProperty(`--${name}`, value);
  };
  model.on("change:made", save);
  model.on("change:is_dark", paint);
  paint();
  el.replaceChildren(style, root);
  // Panel calls what a component returns when it goes away.
  return () => { model.off?.("change:made", save); model.off?.("change:is_dark", paint); };
}

export default { render };
