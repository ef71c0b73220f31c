// The topology: what has travelled between whom up to the cursor, as a ring or as a matrix.

const CROWD = 24; // more ends than this are first shown as a matrix

function render({ model, el }) {
  const stage = new Stage(el, model, "topology", "What travels between whom?");
  const ring = new Ring(), pairs = new Pairs();
  let shape = null, lit = -1, told = -1;
  const now = () => (shape === null ? (stage.frame.names.length > CROWD ? pairs : ring) : shape);
  const buttons = stage.choice(["Ring", "Matrix"], 0, (which) => { shape = which ? pairs : ring; lit = -1; });
  const words = (i) => {
    const { frame } = stage, busy = frame.busy[i];
    const speed = busy > 0 ? [`${seconds(busy)} under way, ${worded(frame.bytes[i] / busy, "B/s")}`] : [];
    const count = frame.count[i];
    return [
      `${frame.names[frame.source[i]]} to ${frame.names[frame.target[i]]}`,
      `${worded(frame.bytes[i], "B")} in ${grouped(count)} ${count === 1 ? "message" : "messages"}`,
      ...speed,
    ];
  };
  const total = (end) => {
    const { frame } = stage, sum = [0, 0];
    frame.bytes.forEach((size, i) => {
      if (frame.source[i] === end) sum[0] += size;
      if (frame.target[i] === end) sum[1] += size;
    });
    return [frame.names[end], `sent ${worded(sum[0], "B")}`, `received ${worded(sum[1], "B")}`];
  };
  const area = make("div", "", stage.body);
  area.style.height = "100%";
  stage.surface(area, (ctx, width, height) => {
    const drawing = now();
    drawing.place(stage.frame, width, height);
    drawing.draw(ctx, stage, lit);
  }, {
    pointermove(x, y, event) {
      const drawing = now(), end = drawing.endAt(x, y);
      lit = end >= 0 ? -1 : drawing.linkAt(stage.frame, x, y);
      stage.hint(end >= 0 ? total(end) : lit >= 0 ? words(lit) : null, event);
      if (lit !== told) stage.schedule();
      told = lit;
    },
    pointerleave(x, y, event) { lit = told = -1; stage.hint(null, event); stage.schedule(); },
    click(x, y) {
      const end = now().endAt(x, y), name = end >= 0 ? stage.frame.names[end] : "";
      stage.set("chosen", name === stage.chosen ? "" : name);
    },
  });
  stage.onFrame = (frame) => {
    const matrix = now() === pairs;
    [...buttons.children].forEach((b, i) => b.setAttribute("aria-pressed", String(matrix === (i === 1))));
    const left = frame.left_out ? ` · ${grouped(frame.left_out)} ends not shown` : "";
    stage.say(`${matrix ? "shade" : "width"}: bytes up to the cursor${left}`);
    lit = told = -1;
  };
  return () => stage.close();
}

export default { render };
