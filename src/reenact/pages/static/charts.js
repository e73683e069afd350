// Lanes and plots of turns: both show the same turns, which the wheel, dragging or keys narrow down.
import { $, get, press } from "/static/common.js";

export class Charts {
  constructor(base, turn) {
    this.base = base;
    this.turn = turn; // -> the number of the turn at hand
    this.by = "duration";
    this.from = this.to = 0; // 0: from the first, to the last
    for (const name of ["lanes", "plots"]) {
      $(`show-${name}`).addEventListener("click", () => this.toggle(name));
      this.wire($(name));
    }
  }

  toggle(name) {
    $(name).hidden = !$(name).hidden;
    press($(`show-${name}`), !$(name).hidden);
    this.draw();
  }

  async draw() {
    for (const chip of document.querySelectorAll("[data-by]")) press(chip, chip.dataset.by === this.by);
    const words = new URLSearchParams({ by: this.by, from: this.from, to: this.to });
    for (const name of ["lanes", "plots"]) {
      if ($(name).hidden) continue;
      const answer = await get(`${this.base}/${name}?${words}`);
      $(`${name}-body`).innerHTML = await answer.text();
    }
    for (const button of document.querySelectorAll("[data-zoom='0']")) button.disabled = !this.from;
    this.mark();
  }

  mark() {
    const turn = this.turn();
    for (const bar of document.querySelectorAll(".bar[data-first]")) {
      bar.classList.toggle("here", bar.dataset.first <= turn && turn <= bar.dataset.last);
    }
  }

  span(section) { // the turns that are drawn
    const axis = section.querySelector(".axis");
    return axis ? [Number(axis.dataset.first), Number(axis.dataset.last)] : [1, 1];
  }

  at(section, event) { // the turn below the pointer, with a fraction
    const box = event.target.closest(".bars")?.getBoundingClientRect();
    if (!box) return 0;
    const [first, last] = this.span(section);
    return first + ((event.clientX - box.left) / box.width) * (last - first + 1);
  }

  show(from, to) {
    this.from = Math.max(1, Math.floor(from));
    this.to = Math.max(this.from + 4, Math.ceil(to));
    this.draw();
  }

  zoom(section, times, around) { // times 0: everything
    if (!times) { this.from = this.to = 0; this.draw(); return; }
    const [first, last] = this.span(section);
    const middle = around || this.turn() || (first + last) / 2;
    const share = Math.min(1, Math.max(0, (middle - first) / (last - first + 1)));
    const wide = Math.max(5, (last - first + 1) * times);
    this.show(middle - share * wide, middle + (1 - share) * wide - 1);
  }

  wire(section) {
    section.addEventListener("click", (event) => {
      const { by, zoom } = event.target.closest("button")?.dataset ?? {};
      if (by) { this.by = by; this.draw(); }
      if (zoom) this.zoom(section, Number(zoom));
    });
    section.addEventListener("wheel", (event) => {
      const turn = this.at(section, event);
      if (!turn || !event.deltaY) return;
      event.preventDefault();
      this.zoom(section, event.deltaY > 0 ? 1.5 : 1 / 1.5, turn);
    }, { passive: false });
    section.addEventListener("dragstart", (event) => event.preventDefault());
    section.addEventListener("pointerdown", (event) => { this.down = this.at(section, event); });
    section.addEventListener("pointerup", (event) => {
      const begin = this.down, end = this.at(section, event);
      this.down = 0;
      const [first, last] = this.span(section);
      if (!begin || !end || Math.abs(end - begin) < (last - first + 1) / 50) return;
      this.dragged = true;
      this.show(Math.min(begin, end), Math.max(begin, end) - 1);
    });
    section.addEventListener("click", (event) => { // the end of dragging is no click on a bar
      if (this.dragged) { event.preventDefault(); event.stopPropagation(); }
      this.dragged = false;
    }, true);
    section.addEventListener("keydown", (event) => {
      const [first, last] = this.span(section);
      const far = Math.max(1, Math.round((last - first + 1) / 3));
      const keys = {
        "+": () => this.zoom(section, 0.5), "-": () => this.zoom(section, 2), 0: () => this.zoom(section, 0),
        ArrowLeft: () => this.show(first - far, last - far), ArrowRight: () => this.show(first + far, last + far),
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      keys[event.key]();
    });
  }
}
