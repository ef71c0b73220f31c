// A button that puts `text` on the clipboard and says so.
function render({ model, el }) {
  const made = document.createElement("button")
  made.type = "button"
  const look = () => {
    const dark = model.get("is_dark")
    made.textContent = model.get("label")
    made.style.cssText = `font: 13px ${model.get("font")}; padding: 5px 10px; border-radius: 6px; cursor: pointer;
      background: transparent; color: ${model.get("ink")}; border: 1px solid ${model.get("line")};`
    made.style.colorScheme = dark ? "dark" : "light"
  }
  const said = (words) => {
    made.textContent = words
    setTimeout(look, 1500)
  }
  made.addEventListener("click", async () => {
    const text = model.get("text")
    try {
      await navigator.clipboard.writeText(text)
    } catch {
      // Pages without the clipboard permission: the old way.
      const area = document.createElement("textarea")
      area.value = text
      document.body.append(area)
      area.select()
      document.execCommand("copy")
      area.remove()
    }
    said("copied")
  })
  for (const name of ["label", "is_dark", "ink", "line"]) model.on(`change:${name}`, look)
  look()
  el.replaceChildren(made)
}

export default { render }
