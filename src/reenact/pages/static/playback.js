// A streamed response, played as it came.
import { $, get, note } from "/static/common.js";

const time = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

export class Playback {
  constructor(base) {
    this.base = base;
    document.addEventListener("click", (event) => {
      if (event.target.closest("[data-stream]")) this.open();
      if (event.target.closest("[data-play]")) this.toggle();
    });
    document.addEventListener("input", (event) => {
      if (event.target.matches(".player input")) { this.stop(); this.show(Number(event.target.value)); }
    });
  }

  offer(at) { // another event is shown
    this.stop();
    this.at = at;
    this.pieces = null;
  }

  async open() {
    const answer = await get(`${this.base}/stream/${encodeURIComponent(this.at)}`);
    if (!answer.ok) { $("stream").innerHTML = await answer.text(); return; }
    const { html, pieces } = await answer.json();
    $("stream").innerHTML = html;
    this.pieces = pieces; // [ms, sort, text]
    this.end = pieces.length ? Number(this.slider.max) : 0;
    this.show(this.end);
  }

  get slider() { return document.querySelector(".player input"); }

  async toggle() {
    if (!$("stream")) { note("This event is no streamed response."); return; }
    if (!this.pieces) await this.open();
    if (!this.pieces?.length) return;
    if (this.frame) { this.stop(); return; }
    let ms = Number(this.slider.value);
    if (ms >= this.end) ms = 0;
    let last = performance.now();
    const tick = (now) => {
      ms += (now - last) * Number(document.querySelector(".player select").value);
      last = now;
      this.show(Math.min(ms, this.end));
      if (ms >= this.end) this.stop();
      else this.frame = requestAnimationFrame(tick);
    };
    document.querySelector("[data-play]").textContent = "pause";
    this.frame = requestAnimationFrame(tick);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const button = document.querySelector("[data-play]");
    if (button) button.textContent = "play";
  }

  show(ms) {
    const place = document.querySelector(".played");
    if (!place) return;
    const spans = [];
    let span;
    for (const [when, sort, text] of this.pieces) {
      if (when > ms) break;
      if (!span || span.className !== sort) { span = document.createElement("span"); span.className = sort; spans.push(span); }
      span.append(text);
    }
    place.replaceChildren(...spans);
    this.slider.value = ms;
    document.querySelector(".player output").textContent = `${time(ms)} of ${time(this.end)}`;
  }
}
