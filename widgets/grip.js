// A handle that changes the height of something drawn elsewhere; the host hears of it in `wanted`.

const WAIT = 40; // milliseconds between two heights told while dragging

function render({ model, el }) {
  make("style", "", el, STYLE);
  const bar = make("div", "pw-gripped", el);
  bar.style.cssText = "position:relative;height:12px";
  let waiting = 0;
  const tell = () => {
    waiting = 0;
    if (model.get("wanted") === height.dragged) return;
    model.set("wanted", height.dragged);
    model.save_changes();
  };
  const height = new Height(bar, model.get("title"), model.get("usual"), () => {
    waiting ||= setTimeout(tell, WAIT);
  });
  const paint = () => {
    const colors = model.get("options")[model.get("is_dark") ? "dark" : "light"];
    for (const name of ["line", "faint", "ink"]) bar.style.setProperty(`--${name}`, colors[name]);
  };
  model.on("change:is_dark", paint);
  model.on("change:usual", () => {
    height.usual = model.get("usual");
    height.apply();
  });
  paint();
  return () => height.close();
}

export default { render };
