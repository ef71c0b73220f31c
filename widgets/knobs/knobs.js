// The control panel: a row for each knob, folds for groups, and what can be done with all of them.
// `layout` says which rows there are, `shown` what each stands at; what a person does goes out as
// `turned` {path, field | place} or {do}. Text only ever goes into textContent and values.

import { copied } from "../page/clipboard.js";
import { make } from "../page/nodes.js";

const LOOK = `
.knobs { font: 14px/1.4 var(--font); color: var(--ink); display: grid; gap: 2px; }
.knobs label { display: block; } .knobs .name { display: flex; justify-content: space-between; gap: 6px; }
.knobs .name > :first-child { flex: 1; }
.knobs button.why, .knobs button.back { color: var(--faint); font-size: 12px; border-radius: 50%; padding: 0;
  width: 18px; height: 18px; line-height: 15px; text-align: center; flex: none; align-self: center; }
.knobs button.back { color: var(--hue); border-color: transparent; font-size: 14px; }
.knobs .told { color: var(--faint); font-size: 12px; margin: 2px 0 6px; overflow-wrap: anywhere; }
.knobs .told div:last-child { font-family: ui-monospace, Menlo, Consolas, monospace; }
.knobs .changed > .name > :first-child { font-weight: 600; }
.knobs .row { padding: 5px 0; } .knobs .both { display: flex; gap: 10px; align-items: center; }
.knobs input[type=range] { flex: 1; min-width: 60px; accent-color: var(--hue); height: 22px; margin: 0;
  cursor: pointer; }
.knobs input[type=text], .knobs select { font: 14px var(--font); color: var(--ink);
  background: var(--paper); border: 1px solid var(--line); border-radius: 6px; padding: 5px 8px;
  box-sizing: border-box; width: 100%; font-variant-numeric: tabular-nums; }
.knobs .both input[type=text] { width: 84px; flex: none; text-align: right; }
.knobs input[type=checkbox] { accent-color: var(--hue); width: 16px; height: 16px; margin: 0 8px 0 0;
  vertical-align: -3px; cursor: pointer; }
.knobs input:hover, .knobs select:hover { border-color: var(--faint); }
.knobs :focus-visible { outline: 2px solid var(--hue); outline-offset: 1px; }
.knobs summary { font-weight: 600; cursor: pointer; padding: 8px 0 4px; }
.knobs details { border-top: 1px solid var(--line); margin-top: 6px; }
.knobs .says { color: var(--wrong); font-size: 14px; margin: 6px 0; }
.knobs .says:empty { display: none; }
.knobs .acts { display: flex; flex-wrap: wrap; gap: 8px; padding: 12px 0 4px; }
.knobs button { font: 12px var(--font); color: var(--ink); background: transparent; cursor: pointer;
  border: 1px solid var(--line); border-radius: 6px; padding: 5px 10px; }
.knobs button:hover { background: var(--raised); }
.knobs.across > div:first-child { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr));
  gap: 0 20px; }
.knobs.across details { grid-column: 1 / -1; margin: 0; border: 0; } .knobs.across .acts { display: none; }
.knobs.across details > div { display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr));
  gap: 0 20px; max-height: 300px; overflow-y: auto; }
.knobs.across summary { font-weight: 400; color: var(--faint); padding: 0; font-size: 12px; }`;

// One control: its node, and `show({field, place})`. `tell` hears {field} or {place}.
function controlOf(facts, tell) {
  const row = make("div", "row");
  row.style.paddingLeft = `${14 * facts.depth}px`;
  const named = (input, name = facts.label) => {
    input.setAttribute("aria-label", name);
    input.title = facts.doc;
    return input;
  };
  const button = (kind, text, parent) => {
    const made = make("button", kind, parent, text);
    made.type = "button";
    return made;
  };
  const name = make("div", "name", row), label = make(facts.kind === "switch" ? "label" : "span", "", name, facts.label);
  const back = button("back", "↺", name), why = button("why", "?", name), told = make("div", "told", row);
  back.onclick = () => tell({ do: "undo" });
  for (const line of facts.help) make("div", "", told, line);
  why.title = facts.doc;
  const explain = (isOpen) => {
    told.hidden = !isOpen;
    why.setAttribute("aria-expanded", String(isOpen));
  };
  explain(false);
  why.onclick = () => explain(told.hidden);
  why.onkeydown = (event) => { if (event.key === "Escape") explain(false); };
  // Marks a knob that does not stand where it began, with the way back.
  const marked = (show) => (at) => {
    show(at);
    back.hidden = !("was" in at);
    row.classList.toggle("changed", "was" in at);
    if (!back.hidden) {
      back.title = `back to ${at.was || "none"}`;
      back.setAttribute("aria-label", back.title);
    }
  };
  if (facts.kind === "switch") {
    const box = make("input");
    box.type = "checkbox";
    label.prepend(named(box));
    box.onchange = () => tell({ field: box.checked });
    return { row, show: marked(({ field }) => { box.checked = field; }) };
  }
  if (facts.kind === "choice") {
    const list = named(make("select", "", row));
    for (const choice of facts.choices) list.append(new Option(choice.replaceAll("_", " "), choice));
    list.onchange = () => tell({ field: list.value });
    return { row, show: marked(({ field }) => { list.value = field; }) };
  }
  const line = facts.kind === "slider" ? make("div", "both", row) : row;
  const slider = facts.kind === "slider" ? named(make("input", "", line)) : null;
  const field = named(make("input", "", line), slider ? `${facts.label}: value` : facts.label);
  field.type = "text";
  field.autocomplete = "off";
  if (!slider) field.placeholder = facts.empty || "not set";
  if (facts.names) {
    const known = make("datalist", "", line);
    known.id = `names-of-${facts.path}`;
    for (const one of facts.names) known.append(new Option(one, one));
    field.setAttribute("list", known.id);
  }
  let typing = false;
  field.oninput = () => { typing = true; };
  field.onblur = () => { typing = false; };
  field.onchange = () => { typing = false; tell({ field: field.value }); };
  let held = false;
  if (slider) {
    Object.assign(slider, { type: "range", min: facts.low, max: facts.high, step: facts.step });
    slider.onpointerdown = () => { held = true; };
    slider.onpointerup = slider.onchange = () => { held = false; };
    slider.oninput = () => tell({ place: slider.value * 1 });
  }
  const show = marked((at) => {
    if (!typing) field.value = at.field;
    if (slider && "place" in at && !held) {
      slider.value = at.place;
      slider.setAttribute("aria-valuetext", at.field);
    }
  });
  return { row, show };
}

// Shows the knob that a person came for, with what it is, wherever it is folded.
function comeTo(row) {
  const fold = row.closest("details");
  if (fold) fold.open = true;
  row.querySelector(".why").click();
  row.scrollIntoView({ block: "center" });
  row.querySelector("input, select").focus({ preventScroll: true });
}

function render({ model, el }) {
  make("style", "", el).textContent = LOOK;
  const root = make("div", model.get("across") ? "knobs across" : "knobs", el), rows = make("div", "", root);
  const says = make("div", "says", root), acts = make("div", "acts", root);
  says.setAttribute("role", "alert");
  const controls = new Map(), folds = new Map();
  let count = 0;
  const tell = (turned) => {
    model.set("turned", { ...turned, count: ++count });
    model.save_changes();
  };
  for (const [text, what] of [["Reset", "reset"], ["Randomise", "randomise"]]) {
    make("button", "", acts, text).onclick = () => tell({ do: what });
  }
  for (const [text, of] of [["Copy as CLI", "cli"], ["Copy as Python", "python"]]) {
    const button = make("button", "", acts, text);
    button.onclick = async () => {
      await copied(model.get(of));
      button.textContent = "copied";
      setTimeout(() => { button.textContent = text; }, 1500);
    };
  }
  for (const button of acts.children) button.type = "button";

  const fold = (group) => {
    if (!folds.has(group)) {
      const made = make("details");
      make("summary", "", made, group);
      folds.set(group, { made, inside: make("div", "", made) });
    }
    return folds.get(group);
  };
  // Nodes stay where they are, so that a knob being turned keeps its focus.
  const place = (parent, wanted) => {
    wanted.forEach((child, at) => {
      if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] || null);
    });
    while (parent.children.length > wanted.length) parent.lastChild.remove();
  };
  const show = () => {
    const shown = model.get("shown");
    for (const { path, show } of controls.values()) if (path in shown) show(shown[path]);
  };
  const laid = () => {
    const before = new Map(controls);
    controls.clear();
    const top = [];
    for (const { group, knobs } of model.get("layout")) {
      const inside = knobs.map((facts) => {
        const key = JSON.stringify(facts);
        const made = before.get(key)
          || { path: facts.path, ...controlOf(facts, (turned) => tell({ path: facts.path, ...turned })) };
        controls.set(key, made);
        return made.row;
      });
      if (group) {
        place(fold(group).inside, inside);
        top.push(fold(group).made);
      } else top.push(...inside);
    }
    place(rows, top);
    show();
  };
  const paint = () => {
    const dark = model.get("is_dark");
    const colours = model.get("options")[dark ? "dark" : "light"] || {};
    for (const [name, value] of Object.entries(colours)) root.style.setProperty(`--${name}`, value);
    root.style.colorScheme = dark ? "dark" : "light";
  };
  const heard = [["layout", laid], ["shown", show], ["is_dark", paint], ["options", paint],
    ["says", () => { says.textContent = model.get("says"); }]];
  for (const [name, act] of heard) {
    model.on(`change:${name}`, act);
    act();
  }
  const sought = [...controls.values()].find(({ path }) => path === model.get("sought"));
  if (sought) requestAnimationFrame(() => comeTo(sought.row));
  return () => { for (const [name, act] of heard) model.off?.(`change:${name}`, act); };
}

export default { render };
