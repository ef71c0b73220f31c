"""A page walked by keys alone: what Tab reaches, in which order, and whether it shows."""

from dataclasses import dataclass

# Everything a key should reach, in the order of the document and through its shadows.
SCRIPT = """() => {
  const OFFERED = 'a[href], button, input, select, textarea, summary, [tabindex]'
  const words = (e) => [e.tagName.toLowerCase(), (e.getAttribute('aria-label')
    || e.labels?.[0]?.textContent || e.title || e.textContent || '').trim().slice(0, 50)].join(' ')
  const radio = (e) => e.type === 'radio' && !e.checked  // one of a group has the focus
  const offered = (e) => e.matches(OFFERED) && e.tabIndex >= 0 && !e.disabled && !radio(e)
    && e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().width > 0
  const all = []
  const walk = (root) => { for (const e of root.querySelectorAll('*')) {
    if (offered(e)) all.push(e)
    if (e.shadowRoot) walk(e.shadowRoot) } }
  walk(document)
  const focused = () => { let at = document.activeElement
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
    return at }
  // How what has the focus looks, with what stands around and in it.
  const PROPERTIES = ['outline', 'boxShadow', 'border', 'backgroundColor', 'color', 'opacity',
    'textDecorationLine']
  const look = (e) => {
    const found = [], of = (node) => { for (const part of [null, '::before', '::after']) {
      const style = getComputedStyle(node, part)
      found.push(...PROPERTIES.map((name) => style[name])) } }
    for (let node = e, up = 0; node?.nodeType === 1 && up < 3; node = node.parentElement, up++) {
      of(node)
      for (const child of [...node.children].slice(0, 6)) of(child) }
    return found.join() }
  let before = null, shown = ''
  const last = window.keys?.all ?? []
  window.keys = { all, still: last.length === all.length && all.every((e, i) => e === last[i]),
    words: (place) => words(all[place]),
    // After a Tab: the place of what has the focus, and the words of what had it before and looked
    // no other then than now.
    step: () => {
      const now = focused(), was = before === document.body ? null : before
      const plain = was?.isConnected && was !== now && look(was) === shown
      const hidden = plain ? words(before) : '';
      [before, shown] = [now, look(now)]
      return [all.indexOf(now), hidden] } }
  return [all.length, window.keys.still] }"""
STILL = 300  # milliseconds in which no control came, went or was made anew
LOOKS = 200  # for such a while, at most
SPARE = 80  # presses beyond the number of controls, at most: what comes only once one is near it


@dataclass(frozen=True)
class Walk:
    """`order`: places of controls, as Tab reached them; `missed`: words of those that it did not;
    `unseen`: of those that did not look focused."""

    order: list[int]
    missed: list[str]
    unseen: list[str]


def walked(page) -> Walk:
    """Press Tab from the top of a page, once it stands still, until all its controls had the
    focus."""
    page.evaluate("() => { document.activeElement?.blur?.(); window.scrollTo(0, 0) }")
    count = 0
    for _ in range(LOOKS):  # a run that opened may still be laying out its views
        count, still = page.evaluate(SCRIPT)
        if still:
            break
        page.wait_for_timeout(STILL)
    order, unseen = [], []
    for _ in range(count + SPARE):
        page.keyboard.press("Tab")
        place, hidden = page.evaluate("() => window.keys.step()")
        if hidden:
            unseen.append(hidden)
        if place >= 0 and place not in order:
            order.append(place)
        if len(order) == count:
            break
    missed = [
        page.evaluate("(place) => window.keys.words(place)", place)
        for place in range(count)
        if place not in order
    ]
    return Walk(order, missed, unseen)


def all_by_keys(page) -> None:
    """Assert that Tab reaches every control of the page, in the order in which they are read, and
    that each is seen to have the focus."""
    walk = walked(page)
    first = walk.order.index(min(walk.order))  # Tab may begin where something had been pressed
    turned = walk.order[first:] + walk.order[:first]
    assert not walk.missed, f"not reached: {walk.missed}"
    assert not walk.unseen, f"not seen to have the focus: {walk.unseen}"
    assert turned == sorted(turned)


def opens_and_shuts(page, button, entry: str) -> None:
    """Assert that Enter on a button opens a menu with that entry, and Escape shuts it again and
    gives the focus back."""
    button.press("Enter")
    shown = page.get_by_role("button", name=entry).or_(page.get_by_role("menuitem", name=entry))
    shown.wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    shown.wait_for(state="hidden")
    assert button.evaluate("e => e.getRootNode().activeElement === e")
