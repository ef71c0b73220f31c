// A new element below `parent`. Text only ever goes into textContent.
function node(tag, parent, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  parent?.append(made);
  return made;
}

