import { worded } from "../canvas/numbers.js"

// The one time bar of a self-contained page: moves every view through an event on the document.
// It begins where the views do (see replay.js).
function timeBar(duration) {
  const slider = document.querySelector("#time"), play = document.querySelector("#play")
  const clock = document.querySelector("#clock")
  let now = 0, started = null
  const show = (time, tell) => {
    now = Math.min(Math.max(0, time), duration)
    slider.value = now
    clock.textContent = `${worded(now, "s")} of ${worded(duration, "s")}`
    if (tell) document.dispatchEvent(new CustomEvent("workbench-cursor", { detail: now }))
  }
  const stop = () => {
    started = null
    play.textContent = "Play"
  }
  const frame = (at) => {
    if (!started) return
    const time = started.from + ((at - started.at) / 12000) * duration
    show(time, true)
    if (time >= duration) return stop()
    requestAnimationFrame(frame)
  }
  const toggle = () => {
    if (started) return stop()
    started = { at: performance.now(), from: now >= duration ? 0 : now }
    play.textContent = "Pause"
    requestAnimationFrame(frame)
  }
  slider.max = duration || 1
  slider.addEventListener("input", () => {
    stop()
    show(slider.value * 1, true)
  })
  play.addEventListener("click", toggle)
  document.addEventListener("workbench-cursor", (event) => show(event.detail, false))
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || /^(INPUT|BUTTON|SELECT|TEXTAREA)$/.test(event.target.tagName)) return
    event.preventDefault()
    toggle()
  })
  show(Number(document.body.dataset.at ?? duration), false)
}
