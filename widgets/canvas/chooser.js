// Hovering a lane lights its owner up everywhere; a click pins it.
export function laneChooser(card, timeline) {
  let pinned = "", over = "";
  card.onUnpinned(() => { pinned = ""; });
  const nameOf = (lane) => (lane >= 0 && timeline().known(lane) ? card.frame.names[timeline().at(lane)] : "");
  return {
    hover(lane) {
      const name = nameOf(lane);
      if (name !== over) card.set("chosen", (over = name) || pinned);
    },
    pin(lane) {
      const name = nameOf(lane);
      pinned = pinned === name ? "" : name;
      card.set("chosen", pinned);
    },
    nameOf,
  };
}
