// The time bar: play, step, speed and scrub. One row of controls over a model with the traits
// time, duration, playing, speed, follow, live, paused, modelled, steps, work, pinned, is_dark,
// options; what a person does goes out as `command` {do, …}.

import { clockTime } from "../canvas/numbers.js"
import { keySheet } from "../page/key_sheet.js"

const SPEEDS = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000]
const ANSWER = 400 // milliseconds the host may take before it is asked again
const PINNED = 700 // milliseconds that an owner is lit up before it counts as pinned
const ICONS = {
  play: "M8 5v14l11-7z",
  pause: "M6 5h4v14H6zm8 0h4v14h-4z",
  back: "M6 5h2.5v14H6zm13 0v14L9.5 12z",
  on: "M15.5 5H18v14h-2.5zM5 5v14l9.5-7z",
  stop: "M6 6h12v12H6z",
  live: "M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10z",
}

function speedName(speed, modelled) {
  if (speed === 1) return modelled ? "1× modelled" : "real time"
  const times = Math.round(Math.max(speed, 1 / speed))
  const said = times < 1000 ? times : `${Math.round(times / 1000)}k`
  return `${said}× ${speed > 1 ? "faster" : "slower"}`
}

// The time `by` steps from `now`: `stepped` of transport.py.
function stepped(steps, now, by, stop) {
  let low = 0, high = steps.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (by > 0 ? steps[middle] <= now : steps[middle] < now) low = middle + 1
    else high = middle
  }
  const place = by > 0 ? low + by - 1 : low + by
  return by > 0 ? (place < steps.length ? steps[place] : stop) : place >= 0 ? steps[place] : 0
}

// Bytes as hosts hand them over, as numbers.
function numbers(bytes) {
  if (!bytes || !bytes.byteLength) return new Float64Array(0)
  if (bytes instanceof ArrayBuffer) return new Float64Array(bytes)
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))
}

// Where a person wants the cursor. Views that hold the whole run follow at once; the host gets the
// newest moment wanted, and only when it has shown the one before: none waits behind another.
// `rest` is called when it has shown the last, or has had its time for it.
function seeker(model, tell, rest) {
  let wanted = null, sent = null, patience = 0
  const send = () => {
    sent = wanted
    tell({ do: "seek", time: sent })
    patience = setTimeout(answered, ANSWER)
  }
  const answered = () => {
    clearTimeout(patience)
    const late = sent !== null && wanted !== sent
    sent = null
    if (late) return send()
    wanted = null
    rest()
  }
  return {
    heard() { if (sent !== null && model.get("time") === sent) answered() },
    get wanted() { return wanted },
    forget() { [wanted, sent] = [null, null] },
    seek(time) {
      wanted = time
      document.dispatchEvent(new CustomEvent("workbench-scrub", { detail: time }))
      if (sent === null) send()
    },
  }
}

function button(icon, title, act) {
  const made = document.createElement("button")
  made.type = "button"
  made.innerHTML = `<svg viewBox="0 0 24 24" width="20" height="20"><path/></svg><span></span>`
  made.addEventListener("click", act)
  made.look = (name, words) => {
    made.querySelector("path").setAttribute("d", ICONS[name])
    made.title = words
    made.setAttribute("aria-label", words)
  }
  made.look(icon, title)
  return made
}

// Tells which of the `count` views of the page (nodes of the class pw-card, in their order) are in
// sight or nearly, now and whenever it changes; a page that nobody looks at has none. Gives a stop.
function watchSight(count, tell, found) {
  const near = { rootMargin: "200px", scrollMargin: "200px" }
  let cards = [], tries = 0, waiting = 0, last = ""
  const within = (root) => {
    for (const e of root.querySelectorAll("*")) {
      if (e.classList.contains("pw-card")) cards.push(e)
      if (e.shadowRoot) within(e.shadowRoot)
    }
  }
  const seen = new Map()
  const say = () => {
    const sight = cards.map((card) => !document.hidden && seen.get(card) === true)
    if (JSON.stringify(sight) === last) return
    last = JSON.stringify(sight)
    tell(sight)
  }
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) seen.set(target, isIntersecting)
    say()
  }, near)
  const find = () => {
    cards = []
    within(document)
    if (cards.length >= count()) {
      for (const card of cards) watch.observe(card)
      found(cards)
    } else if (tries++ < 100) waiting = setTimeout(find, 100)
  }
  find()
  document.addEventListener("visibilitychange", say)
  return () => {
    clearTimeout(waiting)
    watch.disconnect()
    document.removeEventListener("visibilitychange", say)
  }
}

const STYLE = `
.transport { display: flex; align-items: center; gap: 4px; flex-wrap: wrap; font: 12px var(--font);
  color: var(--ink); background: var(--paper); border-top: 1px solid var(--line); padding: 6px 8px; }
.transport button { display: inline-flex; align-items: center; gap: 4px; border: 0; padding: 5px;
  border-radius: 6px; background: transparent; color: inherit; cursor: pointer; font: inherit; }
.transport button:hover { background: var(--raised); }
.transport button:focus-visible, .transport select:focus-visible { outline: 2px solid var(--hue); }
.transport button[hidden] { display: none; }
.transport path { fill: currentColor; }
.transport .main { background: var(--raised); }
.transport .pin { border: 1px solid var(--line); padding: 3px 8px; max-width: 150px; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; }
.transport .follow span { padding-right: 3px; }
.transport .follow.on { color: var(--hue); }
.transport .scrub { flex: 1 1 60px; height: 24px; accent-color: var(--hue); margin: 0 4px; min-width: 60px; cursor: pointer; }
.transport .clock { font-variant-numeric: tabular-nums; text-align: right; min-width: 104px; white-space: nowrap; }
.transport .clock i { font-style: normal; color: var(--faint); }
.transport select { flex: 0 1 auto; min-width: 56px; max-width: 104px; font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--line);
  border-radius: 6px; padding: 4px; }
.transport .work { flex: 1 0 100%; display: flex; gap: 10px; align-items: center; color: var(--faint); }
.transport .work[hidden] { display: none; }
.transport .bar { flex: 1; height: 4px; border-radius: 2px; background: var(--line); overflow: hidden; }
.transport .bar div { height: 100%; background: var(--hue); }
`

function render({ model, el }) {
  const root = document.createElement("div")
  root.className = "transport"
  root.setAttribute("role", "group")
  root.setAttribute("aria-label", "Time")
  const style = document.createElement("style")
  style.textContent = STYLE
  let count = 0
  const tell = (command) => {
    model.set("command", { ...command, count: ++count })
    model.save_changes()
  }
  const seeking = seeker(model, tell, () => moved())
  // A run that is over has told when its steps ended; one that goes on takes the step itself.
  const step = (by) => {
    const times = numbers(model.get("steps")), stop = model.get("duration")
    if (!times.length) {
      if (seeking.wanted !== null) tell({ do: "seek", time: seeking.wanted }) // where it steps from
      return act({ do: "step", by })
    }
    const now = seeking.wanted ?? (model.get("follow") ? stop : model.get("time"))
    return seek(stepped(times, now, by, stop))
  }
  const seek = (time) => {
    scrub.value = time
    label(time)
    seeking.seek(time)
  }
  const act = (command) => {
    seeking.forget()
    tell(command)
  }
  const back = button("back", "One step back (←)", () => step(-1))
  const main = button("play", "", () => act({ do: "toggle" }))
  const on = button("on", "One step on (→)", () => step(1))
  const stop = button("stop", "Stop the run", () => tell({ do: "stop" }))
  const follow = button("live", "Follow the newest moment (End)", () => act({ do: "follow" }))
  main.classList.add("main")
  follow.classList.add("follow")
  follow.querySelector("span").textContent = "live"
  follow.removeAttribute("aria-label") // it is called what stands on it

  const scrub = document.createElement("input")
  Object.assign(scrub, { type: "range", min: 0, max: 1, step: "any", className: "scrub" })
  scrub.setAttribute("aria-label", "Moment of the run")
  let held = false
  scrub.addEventListener("pointerdown", () => (held = true))
  scrub.addEventListener("change", () => (held = false))
  scrub.addEventListener("input", () => seek(scrub.value * 1))
  const clock = document.createElement("div")
  clock.className = "clock"
  const moment = document.createElement("span"), whole = document.createElement("i")
  clock.append(moment, whole)
  const speed = document.createElement("select")
  speed.title = "How fast the run is played"
  speed.setAttribute("aria-label", speed.title)
  speed.addEventListener("change", () => tell({ do: "speed", speed: speed.value * 1 }))
  const work = document.createElement("div")
  work.className = "work"
  work.innerHTML = `<span></span><div class="bar"><div></div></div><span></span>`
  const pin = document.createElement("button")
  Object.assign(pin, { type: "button", className: "pin", hidden: true })
  pin.title = "The others are dimmed; press, or Esc, to light up all"
  const unpin = () => {
    document.dispatchEvent(new CustomEvent("workbench-unpin"))
    tell({ do: "unpin" })
  }
  pin.addEventListener("click", unpin)
  let pinning = 0
  root.append(back, main, on, stop, scrub, clock, pin, speed, follow, work)
  el.replaceChildren(style, root)

  // Written only where it differs: the page lays itself out anew after every word.
  function label(time) {
    const length = model.get("duration"), now = clockTime(time, length), all = `of ${clockTime(length)}`
    if (moment.textContent !== `${now} `) {
      moment.textContent = `${now} `
      scrub.setAttribute("aria-valuetext", now)
    }
    if (whole.textContent !== all) whole.textContent = all
  }
  function moved() {
    const time = model.get("follow") ? model.get("duration") : model.get("time")
    scrub.max = model.get("duration") || 1
    if (held || seeking.wanted !== null) return
    scrub.value = time
    label(time)
  }
  function changed() {
    const live = model.get("live")
    const going = live && model.get("follow") ? !model.get("paused") : model.get("playing")
    const what = live && model.get("follow") ? "the run" : ""
    main.look(going ? "pause" : "play", `${going ? "Pause" : "Play"} ${what} (space)`)
    stop.hidden = !live
    follow.hidden = !live
    follow.classList.toggle("on", model.get("follow"))
    const now = model.get("speed")
    const all = SPEEDS.includes(now) ? SPEEDS : [...SPEEDS, now].sort((a, b) => a - b)
    speed.replaceChildren(...all.map((s) => new Option(speedName(s, model.get("modelled")), s, s === now, s === now)))
  }
  function worked() {
    const doing = model.get("work") || {}
    work.hidden = !doing.what
    const said = doing.what ? `${doing.what} … ${doing.words || ""}`.trim() : ""
    document.dispatchEvent(new CustomEvent("workbench-work", { detail: said }))
    const [what, left] = work.querySelectorAll("span")
    what.textContent = doing.what || ""
    left.textContent = doing.words || ""
    work.querySelector(".bar div").style.width = `${100 * (doing.share || 0)}%`
  }
  // Who is lit up for longer than a pointer passes by has a chip, which lets go of it.
  function pinned() {
    const name = model.get("pinned")
    clearTimeout(pinning)
    if (!name) pin.hidden = true
    else pinning = setTimeout(() => {
      pin.textContent = `${name} ×`
      pin.hidden = false
    }, PINNED)
  }
  function coloured() {
    const paint = model.get("options")[model.get("is_dark") ? "dark" : "light"] || {}
    for (const [name, value] of Object.entries(paint)) root.style.setProperty(`--${name}`, value)
    root.style.colorScheme = model.get("is_dark") ? "dark" : "light"
  }
  const sheet = keySheet(root)
  function key(event) {
    const at = event.composedPath()[0]
    if (event.ctrlKey || event.metaKey || event.altKey || !root.isConnected) return
    if (at.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) && at !== scrub)) return
    if (event.key === " " && at.tagName === "BUTTON") return
    const by = event.shiftKey ? 10 : 1
    const commands = {
      " ": () => act({ do: "toggle" }),
      ArrowLeft: () => step(-by),
      ArrowRight: () => step(by),
      Home: () => seek(0),
      End: () => act({ do: "follow" }),
      "?": sheet,
      ...(model.get("pinned") ? { Escape: unpin } : {}),
    }
    if (at.getAttribute && /^(slider|tab|option|menuitem|combobox)$/.test(at.getAttribute("role") || "")) return
    if (!commands[event.key]) return
    event.preventDefault()
    commands[event.key]()
  }
  const watched = [
    [["time"], seeking.heard],
    [["time", "duration", "follow"], moved],
    [["playing", "speed", "follow", "live", "paused", "modelled"], changed],
    [["work"], worked],
    [["pinned"], pinned],
    [["is_dark", "options"], coloured],
  ]
  for (const [names, act] of watched) {
    for (const name of names) model.on(`change:${name}`, act)
    act()
  }
  document.addEventListener("keydown", key)
  const unwatch = watchSight(() => model.get("cards") || 1, (sight) => {
    model.set("sight", sight)
    model.save_changes()
  }, (cards) => cards[model.get("sought")]?.scrollIntoView({ block: "start" }))
  return () => {
    unwatch()
    clearTimeout(pinning)
    document.removeEventListener("keydown", key)
    for (const [names, act] of watched) for (const name of names) model.off?.(`change:${name}`, act)
  }
}

export default { render }
