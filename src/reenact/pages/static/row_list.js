// A list of any length of which only the rows in sight are in the page.
import { $ } from "/static/common.js";

const ROW = 26;
export const CHUNK = 100;
const AROUND = 15;
const TALLEST = 12e6; // browsers draw no element that is much taller
const MOST_CHUNKS = 60;

export class List {
  constructor(source) {
    this.source = source; // (from, n) -> {total, done, rows}
    this.box = $("list");
    this.spacer = $("spacer");
    this.window = $("window");
    this.total = 0;
    this.selected = -1;
    this.chunks = new Map();
    this.stale = new Map(); // shown until the rows are there that replace them
    this.box.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => { if (this.sees) this.reveal(this.selected); this.draw(); }).observe(this.box);
  }

  clear() {
    for (const [number, found] of this.chunks) if (found.rows) this.stale.set(number, found.rows);
    this.chunks.clear();
  }

  reset() {
    this.clear();
    this.total = -1;
    this.box.scrollTop = 0;
  }

  async chunk(number) {
    let found = this.chunks.get(number);
    if (!found) {
      found = this.source(number * CHUNK, CHUNK).then((answer) => {
        this.resize(answer.total);
        // what is not full may grow: it is fetched again when it is looked at again
        if (answer.rows.length < CHUNK) setTimeout(() => this.renew(number), 1500);
        return answer.rows;
      });
      found.then((rows) => { found.rows = rows; this.stale.delete(number); this.draw(); }, () => this.chunks.delete(number));
      this.chunks.set(number, found);
      if (this.chunks.size > MOST_CHUNKS) this.chunks.delete(this.chunks.keys().next().value);
    }
    return found;
  }

  renew(number) {
    const found = this.chunks.get(number);
    if (found?.rows) this.stale.set(number, found.rows);
    this.chunks.delete(number);
  }

  resize(total) {
    if (total === this.total) return;
    this.total = total;
    this.spacer.style.height = `${Math.min(total * ROW, TALLEST)}px`;
    this.draw();
  }

  get first() { // the row at the upper edge, with a fraction
    const { scrollTop, clientHeight } = this.box;
    if (this.total * ROW <= TALLEST) return scrollTop / ROW;
    return (scrollTop / (TALLEST - clientHeight)) * (this.total - clientHeight / ROW);
  }

  reveal(row) {
    const seen = this.box.clientHeight / ROW;
    const first = this.first;
    if (row >= first + 1 && row <= first + seen - 2) return;
    const wanted = Math.max(0, Math.min(row - seen / 3, this.total - seen));
    const ratio = wanted / Math.max(1e-9, this.total - seen);
    this.box.scrollTop = this.total * ROW <= TALLEST ? wanted * ROW : ratio * (TALLEST - this.box.clientHeight);
    this.draw();
  }

  draw() {
    if (this.isPlanned) return;
    this.isPlanned = true;
    requestAnimationFrame(() => { this.isPlanned = false; this.paint(); });
  }

  paint() {
    const first = this.first;
    const begin = Math.max(0, Math.floor(first) - AROUND);
    const end = Math.min(this.total, Math.ceil(first + this.box.clientHeight / ROW) + AROUND);
    const parts = [];
    for (let row = begin; row < end; row++) {
      const number = Math.floor(row / CHUNK);
      const found = this.chunks.get(number);
      if (!found) this.chunk(number);
      const cell = (found?.rows ?? this.stale.get(number))?.[row % CHUNK];
      parts.push(cell ? cell[1] : '<div class="row blank" role="option">…</div>');
    }
    this.window.innerHTML = parts.join("");
    this.window.style.transform = `translateY(${this.box.scrollTop + (begin - first) * ROW}px)`;
    [...this.window.children].forEach((child, at) => {
      const row = begin + at;
      child.id = `row-${row}`;
      child.dataset.row = row;
      child.setAttribute("aria-selected", String(row === this.selected));
      child.setAttribute("aria-posinset", row + 1);
      child.setAttribute("aria-setsize", this.total);
    });
    this.sees = this.selected >= first - 1 && this.selected <= first + this.box.clientHeight / ROW;
    if ($(`row-${this.selected}`)) this.box.setAttribute("aria-activedescendant", `row-${this.selected}`);
    else this.box.removeAttribute("aria-activedescendant");
  }
}
