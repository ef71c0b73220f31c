// Everything that shows, title and figures included, as one PNG.
function savePicture(stage) {
  const box = stage.root.getBoundingClientRect(), ratio = 2;
  const sheet = document.createElement("canvas");
  sheet.width = box.width * ratio;
  sheet.height = box.height * ratio;
  const ctx = sheet.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.fillStyle = css(stage.colors.paper);
  ctx.fillRect(0, 0, box.width, box.height);
  ctx.textBaseline = "top";
  for (const node of stage.root.querySelectorAll("canvas")) {
    const at = node.getBoundingClientRect();
    ctx.drawImage(node, at.left - box.left, at.top - box.top, at.width, at.height);
  }
  const texts = ".pw-title,.pw-figures dt,.pw-figures dd,.pw-legend span,.pw-said,.pw-text";
  for (const node of stage.root.querySelectorAll(texts)) {
    const at = node.getBoundingClientRect(), style = getComputedStyle(node);
    if (at.top < box.top || at.bottom > box.bottom || !at.width) continue;
    ctx.fillStyle = style.color;
    ctx.font = `${style.fontWeight} ${style.fontSize} ${stage.colors.font}`;
    const indent = node.parentNode.className === "pw-legend" ? 20 : 0;
    const text = fit(ctx, node.firstChild?.textContent || node.textContent, at.width - indent + 2);
    ctx.fillText(text || "", at.left - box.left + indent, at.top - box.top + 3);
  }
  sheet.toBlob((blob) => {
    const link = make("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${stage.name}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}
