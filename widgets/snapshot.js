// What a view shows, title and figures included, as one picture.

const TEXTS = ".pw-title,.pw-label,.pw-value,.pw-legend span,.pw-said,.pw-text";

function savePicture(stage) {
  const sheet = picture(stage, 2);
  sheet.toBlob((blob) => {
    const link = make("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${stage.name}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

function picture(stage, ratio) {
  const box = stage.root.getBoundingClientRect();
  const sheet = document.createElement("canvas");
  sheet.width = box.width * ratio;
  sheet.height = box.height * ratio;
  const ctx = sheet.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.fillStyle = css(stage.colors.paper);
  ctx.fillRect(0, 0, box.width, box.height);
  for (const surface of stage.surfaces) surface.paint(ratio); // as sharp as the sheet
  for (const node of stage.root.querySelectorAll("canvas")) {
    const at = node.getBoundingClientRect();
    ctx.drawImage(node, at.left - box.left, at.top - box.top, at.width, at.height);
  }
  for (const surface of stage.surfaces) surface.paint();
  ctx.textBaseline = "top";
  for (const node of stage.root.querySelectorAll(TEXTS)) drawText(ctx, stage, node, box);
  return sheet;
}

// One line of the page's text where it stands; what is scrolled out of its list is left out.
function drawText(ctx, stage, node, box) {
  const at = node.getBoundingClientRect(), style = getComputedStyle(node);
  const list = (node.closest("ol") || stage.root).getBoundingClientRect();
  if (!at.width || at.top < list.top - 1 || at.bottom > list.bottom + 1) return;
  ctx.fillStyle = style.color;
  ctx.font = `${style.fontWeight} ${style.fontSize} ${stage.colors.font}`;
  const swatch = node.querySelector("canvas") ? 20 : 0;
  const own = [...node.childNodes].filter((child) => child.nodeType === Node.TEXT_NODE);
  const text = fit(ctx, own.map((child) => child.textContent).join(""), at.width - swatch + 2);
  const right = style.textAlign === "right";
  ctx.textAlign = right ? "right" : "left";
  const x = (right ? at.right : at.left + swatch) - box.left;
  ctx.fillText(text, x, at.top - box.top + (at.height - parseFloat(style.fontSize)) / 2);
}
