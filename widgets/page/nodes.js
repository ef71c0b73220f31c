// An element of a page, below `parent` where one is given. Text only ever goes into textContent.
export function make(tag, className, parent, text = "") {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}
