// Buttons that act on the pinned thread of a live run. The run's header says what its driver
// understands; without a host that listens, or once the run is over, there are none.

import { make } from "../../page/nodes.js";

export class ThreadCommands {
  constructor(card) {
    Object.assign(this, { card, turn: 0, key: "", thread: "" });
    this.row = make("div", "pw-switch", card.tools);
  }

  show(frame, thread) {
    const isHeard = this.card.model.get("command") !== undefined;
    const known = isHeard && frame && !frame.empty ? frame.commands || [] : [];
    this.thread = thread;
    if (known.join() !== this.key) this.build(known);
    for (const node of this.row.children) {
      node.disabled = !thread;
      node.title = thread ? "" : "Click a lane first";
      node.style.opacity = thread ? "" : "0.5";
    }
  }

  build(known) {
    this.key = known.join();
    this.row.replaceChildren();
    const button = (label, act) => {
      const node = make("button", "", this.row, label);
      node.type = "button";
      node.onclick = act;
    };
    if (known.includes("fork")) button("Fork here", () => this.tell({ fork: this.thread }));
    const kill = ["kill", "abort"].find((verb) => known.includes(verb));
    if (kill) button("Kill", () => this.tell({ [kill]: this.thread }));
    if (!known.includes("say")) return;
    const input = make("input", "", this.row);
    Object.assign(input, { type: "text", placeholder: "say something to it", maxLength: 2000 });
    input.setAttribute("aria-label", "What to say to the pinned thread");
    input.style.cssText = "font:inherit;height:28px;width:170px;padding:0 8px;color:var(--ink);background:var(--paper);border:1px solid var(--line)";
    const say = () => {
      if (!input.value.trim()) return;
      this.tell({ say: [this.thread, input.value] });
      input.value = "";
    };
    input.onkeydown = (event) => {
      event.stopPropagation();
      if (event.key === "Enter") say();
    };
    button("Say", say);
  }

  tell(command) {
    this.turn += 1;
    this.card.set("command", { ...command, turn: this.turn }); // told twice, it is done twice
  }
}
