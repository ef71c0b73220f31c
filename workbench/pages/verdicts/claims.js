// The column of claims: sentence, grade, the paper's figure, ours, and a button to judge again.
// `cards` says what stands there, `where` what the first map says, `limits` where the model stops being true, `left` how many are yet
// to be judged; what a person asks for goes out as `asked` {id, fast, own} or {stop}. `bar`: the paper, what is needed, what came out here. Text only
// ever goes into textContent. `pace`: how long what is left will take.

import { make, prose } from "../../../widgets/page/nodes.js";

const LOOK = `
.claims { font: 14px/1.45 var(--wb-font); color: var(--wb-ink); }
.claims h2 { font-size: 16px; font-weight: 600; margin: 0; flex: 1; } .claims p { margin: 0; }
.claims .head, .claims .top { display: flex; justify-content: space-between; align-items: center; gap: 8px; }
.claims .head { padding-bottom: 12px; }
.claim { border-top: 1px solid var(--wb-line); padding: 12px 0 10px; display: grid; gap: 8px; }
.claims .where[hidden] { display: none; } .claim .says { font-weight: 600; }
.claim .faint { color: var(--wb-faint); font-size: 12px; }
.verdict { font-size: 12px; font-weight: 600; } .verdict.yes { color: var(--wb-accent); }
.verdict.no { color: var(--wb-wrong); } .verdict.open { color: var(--wb-faint); font-weight: 500; }
.claims button.grade { font-size: 12px; color: var(--wb-faint); border-radius: 999px; padding: 1px 9px; }
.claims button.grade.modelled { border-style: dashed; }
.claims .about { font-size: 12px; color: var(--wb-faint); } .claims .about[hidden] { display: none; }
.claim.pending :is(.bar, dl) { opacity: .5; } .claim.pending dl { font-style: italic; }
.claims dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 12px; margin: 0;
  font-size: 12px; }
.claims code { font: 12px ui-monospace, Menlo, Consolas, monospace; }
.claims dt { color: var(--wb-faint); }
.claims dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.claims .bar { position: relative; height: 48px; font-size: 12px; }
.bar i { position: absolute; top: 22px; height: 2px; background: var(--wb-accent); opacity: .45; }
.bar b { position: absolute; top: 16px; width: 2px; height: 14px; margin-left: -1px;
  background: var(--wb-faint); }
.bar .here { width: 11px; height: 11px; margin-left: -5.5px; top: 17px; border-radius: 50%;
  background: var(--wb-accent); } .bar .none { opacity: .45; }
.bar .paper { width: 8px; height: 8px; margin-left: -4px; top: 19px; transform: rotate(45deg);
  background: var(--wb-ink); }
.bar span { position: absolute; white-space: nowrap; color: var(--wb-faint); }
.bar .axis { top: 23px; left: 0; right: 0; width: auto; height: 1px; margin: 0;
  background: var(--wb-line); }
.claims button { font: 12px var(--wb-font); color: var(--wb-accent); background: transparent;
  cursor: pointer; border: 1px solid var(--wb-line); border-radius: 6px; padding: 4px 10px;
  justify-self: start; }
.claims .work { display: flex; justify-content: space-between; align-items: center; padding-bottom: 10px;
  color: var(--wb-faint); font-size: 12px; } .claims .work[hidden] { display: none; }
.claims .asks { display: flex; gap: 8px; flex-wrap: wrap; }
.claims button:hover { background: var(--wb-raised); }
.claims button:focus-visible { outline: 2px solid var(--wb-accent); outline-offset: 1px; }`;

// Marks on one scale; names of neighbours stand above and below the line in turn.
function drawBar(el, { marks, low, high }) {
  el.replaceChildren();
  el.hidden = !marks;
  if (!marks) return;
  const percent = (share) => `${100 * share}%`;
  make("b", "axis", el);
  const span = make("i", "", el);
  span.style.left = percent(low);
  span.style.width = percent(high - low);
  const sorted = [...marks].sort((a, b) => a.at - b.at);
  const rows = [-2, 32];
  let place = 0;
  sorted.forEach((mark) => {
    make("b", mark.kind, el).style.left = percent(mark.at);
    if (!mark.text) return;
    const name = make("span", "", el, mark.text);
    name.style.top = `${rows[place++ % rows.length]}px`;
    if (mark.at < 0.5) name.style.left = percent(Math.max(0, mark.at - 0.06));
    else name.style.right = percent(Math.max(0, 1 - mark.at - 0.06));
  });
}

function render({ model, el }) {
  make("style", "", el).textContent = LOOK;
  const root = make("div", "claims", el), head = make("div", "head", root);
  const where = make("div", "claim where", root), list = make("div", "", root), limits = make("div", "claim", root);
  let count = 0;
  const button = (parent, text, asked) => {
    const made = make("button", "", parent, text);
    made.type = "button";
    made.onclick = () => {
      model.set("asked", { ...asked, count: ++count });
      model.save_changes();
    };
    return made;
  };
  make("h2", "", head, "Does it hold?");
  button(head, "Check all", { id: "", fast: true });
  button(head, "Full size", { id: "", fast: false }).title = "At the size of the paper's own figure: minutes, not seconds";
  const work = make("div", "work", null), said = make("span", "", work), told = make("span", "", said);
  const pace = make("span", "", said); // beside what is read out: that would be every second
  head.after(work);
  told.setAttribute("role", "status");
  button(work, "Stop", { stop: true }).title = "What is under way ends before its next run";
  let most = 0;
  const worked = () => {
    const left = model.get("left") || 0;
    most = left ? Math.max(most, left) : 0;
    work.hidden = !left;
    told.textContent = left ? `judging ${most - left + 1} of ${most}` : "";
  };
  const paced = () => { pace.textContent = model.get("pace") ? ` · ${model.get("pace")}` : ""; };
  const { claim, says, over } = model.get("where");
  where.hidden = !says;
  if (says) {
    prose(make("p", "", where), claim);
    make("p", "says", where, `${says}.`);
    make("p", "faint", where, `Over ${over}: the first map under the views`);
  }
  make("h2", "", limits, "Where the model stops being true");
  prose(make("p", "faint", limits), model.get("limits"));
  const known = new Map();
  const made = (id) => {
    const card = make("div", "claim", list), top = make("div", "top", card);
    const found = { text: "", card, verdict: make("span", "", top), grade: make("button", "", top),
      about: make("p", "about", card), sentence: make("p", "", card), bar: make("div", "bar", card), facts: make("dl", "", card) };
    const { grade, about } = found, opens = (isOpen) => {
      about.hidden = !isOpen;
      grade.setAttribute("aria-expanded", String(isOpen));
    };
    grade.type = "button";
    grade.onclick = () => opens(about.hidden);
    opens(false);
    const asks = make("div", "asks", card);
    button(asks, "Check", { id, fast: true });
    found.own = button(asks, "At the paper's setting", { id, fast: true, own: true });
    return found;
  };
  // A card is changed only where it says something else, so that its button keeps its focus.
  const show = () => {
    for (const card of model.get("cards")) {
      if (!known.has(card.id)) known.set(card.id, made(card.id));
      const at = known.get(card.id), text = JSON.stringify(card);
      if (at.text === text) continue;
      at.text = text;
      at.verdict.className = `verdict ${card.kind}`;
      at.verdict.textContent = card.word;
      at.grade.className = `grade ${card.grade}`;
      at.grade.textContent = card.grade;
      at.grade.title = at.about.textContent = `${card.grade}: ${card.about}`;
      at.card.classList.toggle("pending", card.pending);
      prose(at.sentence, card.sentence);
      at.own.hidden = !card.own;
      drawBar(at.bar, card.bar);
      at.facts.replaceChildren();
      for (const [name, said] of card.facts) {
        make("dt", "", at.facts, name);
        prose(make("dd", "", at.facts), said);
      }
    }
  };
  const heard = [["cards", show], ["left", worked], ["pace", paced]];
  for (const [name, act] of heard) {
    model.on(`change:${name}`, act);
    act();
  }
  return () => { for (const [name, act] of heard) model.off?.(`change:${name}`, act); };
}

export default { render };
