// The page of all runs. Only the rows in sight are in the table; all HTML comes escaped from the server.
import { $, get, note, press } from "/static/common.js";

const CHUNK = 100;
const AROUND = 10;
const MOST_CHUNKS = 40;

class RunsPage {
  constructor() {
    this.query = new URLSearchParams(location.search);
    this.body = $("runs").querySelector("tbody");
    this.total = Number($("runs").querySelector("table").getAttribute("aria-rowcount")) - 1;
    const sent = [...this.body.querySelectorAll("tr[data-key]")].map((row) => row.outerHTML);
    this.chunks = new Map([[0, sent]]); // keys work before the first answer
    this.figures = new Map(); // by the key of a run: its cells of money, turns and suspects
    this.picked = new Map(); // by the key of a run: its name
    this.at = -1;
    this.height = this.body.rows[0]?.getBoundingClientRect().height || 30;
    this.wire();
    this.load();
    new EventSource("/live").onmessage = () => this.load();
  }

  // fetching

  async load() { // all that is shown again, in place
    const mine = (this.loading = {});
    try {
      const answer = await get(`/runs?${this.words({ from: 0, n: CHUNK })}`);
      if (!answer.ok || mine !== this.loading) return;
      const found = await answer.json();
      if (mine !== this.loading) return;
      this.chunks.clear();
      this.figures.clear();
      this.chunks.set(0, found.rows);
      this.total = found.total;
      this.around(found);
      this.paint();
      clearTimeout(this.again);
      if (found.unread) this.again = setTimeout(() => this.load(), 300);
    } catch { /* said already */ }
  }

  words(more) {
    const all = new URLSearchParams(this.query);
    for (const [name, value] of Object.entries(more)) all.set(name, value);
    return all.toString();
  }

  around(found) {
    $("summary").textContent = found.summary;
    $("over-time").innerHTML = found.overTime;
    $("period").innerHTML = found.period;
    const table = $("runs").querySelector("table");
    const fresh = document.createElement("template");
    fresh.innerHTML = found.head;
    const focused = document.activeElement?.closest("th")?.cellIndex;
    table.tHead.replaceWith(fresh.content.querySelector("thead"));
    if (focused !== undefined) table.tHead.rows[0].cells[focused]?.querySelector("button")?.focus();
    table.setAttribute("aria-rowcount", this.total + 1);
    for (const chip of document.querySelectorAll("#filter [name=status][type=submit]")) {
      press(chip, chip.value === (this.query.get("status") || ""));
      chip.querySelector("span").textContent = ` ${found.counts[chip.value].toLocaleString("en")}`;
    }
  }

  chunk(number) {
    if (this.chunks.has(number)) return;
    this.chunks.set(number, null);
    const { chunks, loading } = this;
    get(`/runs?${this.words({ from: number * CHUNK, n: CHUNK })}`).then(async (answer) => {
      const found = answer.ok ? await answer.json() : null;
      if (loading !== this.loading) return;
      if (found) chunks.set(number, found.rows); else chunks.delete(number);
      for (const old of [...chunks.keys()].slice(0, Math.max(0, chunks.size - MOST_CHUNKS))) chunks.delete(old);
      this.draw();
    }, () => chunks.delete(number));
  }

  // drawing

  draw() {
    if (this.isPlanned) return;
    this.isPlanned = true;
    requestAnimationFrame(() => { this.isPlanned = false; this.paint(); });
  }

  paint() {
    const top = -this.body.getBoundingClientRect().top;
    const begin = Math.max(0, Math.min(Math.floor(top / this.height) - AROUND, this.total));
    const end = Math.min(this.total, Math.ceil((top + innerHeight) / this.height) + AROUND);
    const parts = [];
    for (let row = begin; row < end; row++) {
      const rows = this.chunks.get(Math.floor(row / CHUNK));
      if (!rows) this.chunk(Math.floor(row / CHUNK));
      parts.push(rows?.[row % CHUNK] || '<tr class="blank"><td>…</td></tr>');
    }
    const filler = (rows) => (rows > 0 ? '<tr class="filler" aria-hidden="true"><td></td></tr>' : "");
    const focused = document.activeElement?.closest("tr[data-key]");
    const place = focused && { key: focused.dataset.key, what: document.activeElement.className };
    this.body.innerHTML = filler(begin) + parts.join("") + filler(this.total - end);
    if (begin > 0) this.body.rows[0].cells[0].style.height = `${begin * this.height}px`;
    if (end < this.total) this.body.rows[this.body.rows.length - 1].cells[0].style.height = `${(this.total - end) * this.height}px`;
    for (const row of this.body.querySelectorAll("tr[data-key]")) {
      this.fill(row);
      const box = row.querySelector(".pick");
      if (box) box.checked = this.picked.has(row.dataset.key);
    }
    if (place) [...(this.row(place.key)?.querySelectorAll("a, input, button") || [])].find((each) => each.className === place.what)?.focus();
    this.mark();
    this.look();
  }

  row(key) { return this.body.querySelector(`tr[data-key="${key}"]`); }

  fill(row) {
    const found = this.figures.get(row.dataset.key);
    if (!found) return;
    ["money", "turns", "suspects"].forEach((name, at) => {
      const cell = row.querySelector(`[data-lazy=${name}]`);
      if (cell) { cell.innerHTML = found[at]; cell.classList.remove("lazy", "soft"); }
    });
  }

  // what only whole files show, for the rows in sight

  async look() {
    if (this.isLooking) return;
    const inSight = [...this.body.querySelectorAll("tr[data-key]")].filter((row) => {
      const { top, bottom } = row.getBoundingClientRect();
      return bottom > 0 && top < innerHeight && row.querySelector(".lazy");
    });
    if (!inSight.length) return;
    this.isLooking = true;
    try {
      const answer = await get(`/runs/figures?keys=${inSight.map((row) => row.dataset.key).join(",")}`);
      const found = answer.ok ? await answer.json() : {};
      for (const [key, cells] of Object.entries(found)) {
        if (!cells) continue;
        this.figures.set(key, cells);
        const row = this.row(key);
        if (row) this.fill(row);
      }
      if (answer.ok) setTimeout(() => this.look(), Object.values(found).some(Boolean) ? 0 : 300);
    } catch { /* said already */ } finally { this.isLooking = false; }
  }

  // what is shown: in the address

  set(more) {
    for (const [name, value] of Object.entries(more)) if (value) this.query.set(name, value); else this.query.delete(name);
    const words = this.query.toString();
    history.replaceState(null, "", words ? `/?${words}` : "/");
    for (const name of ["status", "sort", "since", "until"]) { // what the form sends without this script
      const kept = document.querySelector(`#filter input[type=hidden][name=${name}]`);
      if (kept) kept.value = this.query.get(name) || "";
    }
    this.at = -1;
    this.load();
  }

  pick(key, name) {
    if (this.picked.has(key)) this.picked.delete(key);
    else {
      if (this.picked.size === 2) this.picked.delete([...this.picked.keys()][1]);
      this.picked.set(key, name);
    }
    this.showPicked();
    this.paint();
  }

  showPicked() {
    const [a, b] = this.picked.keys();
    $("picked").hidden = !a;
    $("picked-names").textContent = [...this.picked.values()].join("  ·  ") + (b ? "" : "  ·  choose another run to compare it with");
    $("compare").hidden = !b;
    $("compare").href = b ? `/diff?a=${a}&b=${b}` : "/diff";
  }

  // keys and mouse

  step(by) {
    if (!this.total) return;
    this.at = Math.max(0, Math.min(this.total - 1, this.at < 0 ? 0 : this.at + by));
    const top = this.body.getBoundingClientRect().top + this.at * this.height;
    if (top < 60 || top > innerHeight - 2 * this.height) scrollBy(0, top - innerHeight / 3);
    this.paint();
    this.current()?.querySelector("th a:not(.diff)")?.focus({ preventScroll: true });
  }

  current() { return this.at < 0 ? null : this.body.querySelector(`tr[aria-rowindex="${this.at + 2}"]`); }

  mark() {
    for (const row of this.body.querySelectorAll(".is-at")) row.classList.remove("is-at");
    this.current()?.classList.add("is-at");
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    const search = document.querySelector("#filter input[type=search]");
    if (event.target === search) {
      if (event.key === "Escape") { search.value = ""; this.set({ q: "" }); search.blur(); event.preventDefault(); }
      return;
    }
    const name = this.current()?.querySelector("th a:not(.diff)")?.textContent;
    const moves = {
      j: () => this.step(1), k: () => this.step(-1), "/": () => search.focus(), "?": () => $("keys").showModal(),
      x: () => name && this.pick(this.current().dataset.key, name),
      c: () => (this.picked.size === 2 ? $("compare").click() : note("Choose two runs with x first.")),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  click(event) {
    const box = event.target.closest(".pick");
    if (box) {
      const row = box.closest("tr");
      this.pick(row.dataset.key, row.querySelector("th a:not(.diff)").textContent);
      return;
    }
    const column = event.target.closest("#over-time [data-since]");
    if (column) { this.set({ since: column.dataset.since, until: column.dataset.until }); return; }
    const button = event.target.closest("button");
    if (!button) return;
    const { where, forget } = button.dataset;
    const search = document.querySelector("#filter input[type=search]");
    if (where) { search.value = [search.value.trim(), where].filter(Boolean).join(" "); this.set({ q: search.value }); }
    else if (forget === "period") this.set({ since: "", until: "" });
    else if (forget === "picked") { this.picked.clear(); this.showPicked(); this.paint(); }
    else if (button.id === "show-keys") $("keys").showModal();
    else if (button.name === "sort" || button.name === "status") { event.preventDefault(); this.set({ [button.name]: button.value }); }
  }

  wire() {
    let typing;
    const search = document.querySelector("#filter input[type=search]");
    search.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => this.set({ q: search.value }), 150); });
    $("filter").addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(typing); this.set({ q: search.value }); });
    document.addEventListener("click", (event) => this.click(event));
    document.addEventListener("keydown", (event) => this.key(event));
    addEventListener("scroll", () => this.draw(), { passive: true });
    addEventListener("resize", () => this.draw());
  }
}

globalThis.reenact = new RunsPage();
