// An element of a page, below `parent` where one is given. Text only ever goes into textContent.
export function make(tag, className, parent, text = "") {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}

// Puts `text` into an element, what stands `in backticks` as code.
export function prose(node, text) {
  node.replaceChildren();
  text.split("`").forEach((piece, at) => {
    if (piece) node.append(at % 2 ? make("code", "", null, piece) : piece);
  });
  return node;
}
