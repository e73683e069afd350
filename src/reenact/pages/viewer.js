// The page of a run. All HTML comes escaped from the server; this script fetches, places and moves.
import { $, get, note, press } from "/static/common.js";

const facts = document.body.dataset;

// A list of any length of which only the rows in sight are in the page.
const ROW = 26;
const CHUNK = 100;
const AROUND = 15;
const TALLEST = 12e6; // browsers draw no element that is much taller
const MOST_CHUNKS = 60;

class List {
  constructor(source) {
    this.source = source; // (from, n) -> {total, done, rows}
    this.box = $("list");
    this.spacer = $("spacer");
    this.window = $("window");
    this.total = 0;
    this.selected = -1;
    this.chunks = new Map();
    this.box.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  clear() {
    this.chunks.clear();
  }

  async chunk(number) {
    let found = this.chunks.get(number);
    if (!found) {
      found = this.source(number * CHUNK, CHUNK).then((answer) => {
        this.resize(answer.total);
        // what is not full may grow: it is fetched again when it is looked at again
        if (answer.rows.length < CHUNK) setTimeout(() => this.chunks.delete(number), 1500);
        return answer.rows;
      });
      found.then((rows) => { found.rows = rows; this.draw(); }, () => this.chunks.delete(number));
      this.chunks.set(number, found);
      if (this.chunks.size > MOST_CHUNKS) this.chunks.delete(this.chunks.keys().next().value);
    }
    return found;
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
      const cell = found && found.rows && found.rows[row % CHUNK];
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
    if ($(`row-${this.selected}`)) this.box.setAttribute("aria-activedescendant", `row-${this.selected}`);
    else this.box.removeAttribute("aria-activedescendant");
  }
}

class RunPage {
  constructor() {
    this.base = `/run/${facts.key}`;
    const query = new URLSearchParams(location.search);
    this.filter = { show: query.get("show") || "", lane: query.get("lane") || "", q: query.get("q") || "" };
    this.onlyNew = false;
    this.at = "";
    this.list = new List((from, n) => this.rows(from, n));
    this.wire();
    this.showFilter();
    this.open(this.linked() || facts.at, { push: false });
    if (facts.live) this.live();
  }

  linked() {
    const found = /^#\/e\/(.+)$/.exec(location.hash);
    return found ? decodeURIComponent(found[1]) : "";
  }

  query(more) {
    const words = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...this.filter, ...more })) if (value !== "") words.set(name, value);
    return words.toString();
  }

  async rows(from, n) {
    const filter = JSON.stringify(this.filter);
    const answer = await get(`${this.base}/rows?${this.query({ from, n })}`);
    if (!answer.ok) { $("count").textContent = (await answer.text()).replace(/<[^>]*>/g, " "); throw new Error("no rows"); }
    const found = await answer.json();
    if (filter !== JSON.stringify(this.filter)) throw new Error("another filter by now");
    const part = found.done ? "" : `, ${Math.floor((100 * found.seen) / Math.max(1, found.events))} % looked at`;
    const some = this.isFiltered ? `${found.total.toLocaleString("en")} of ` : "";
    $("count").textContent = `${some}${found.events.toLocaleString("en")} events${part}`;
    if (!found.done) {
      clearTimeout(this.again);
      this.again = setTimeout(() => { this.list.clear(); this.list.chunk(Math.floor(this.list.first / CHUNK)).catch(() => {}); }, 150);
    }
    return found;
  }

  get isFiltered() {
    return Object.values(this.filter).some(Boolean);
  }

  // moving

  open(at, options) { // one after the other: keys may come faster than answers
    this.opening = (this.opening || Promise.resolve()).then(() => this.opened(at, options)).catch(() => {});
    return this.opening;
  }

  async opened(at, { push = true, move = "" } = {}) {
    at = at === "here" ? this.at : at;
    if (!at) { $("event").textContent = "No event yet."; return; }
    const answer = await get(`${this.base}/go?${this.query({ at, move })}`);
    if (!answer.ok) { $("event").innerHTML = await answer.text(); $("context").textContent = ""; return; }
    const found = await answer.json();
    if (found.note) note(found.note);
    this.list.selected = found.row;
    if (!this.list.total) await this.list.chunk(Math.floor(found.row / CHUNK)).catch(() => {});
    this.list.reveal(found.row);
    this.list.draw();
    this.show(found.at, push);
  }

  async step(by) {
    const row = Math.max(0, Math.min(this.list.total - 1, this.list.selected + by));
    if (row === this.list.selected) { note(by > 0 ? "End of the list." : "Beginning of the list."); return; }
    this.list.selected = row;
    this.list.reveal(row);
    this.list.draw();
    const rows = await this.list.chunk(Math.floor(row / CHUNK));
    if (this.list.selected === row && rows[row % CHUNK]) this.show(rows[row % CHUNK][0], false);
  }

  show(at, push) {
    const hash = `#/e/${encodeURIComponent(at).replace(/%3A/g, ":")}`;
    if (location.hash !== hash) history[push ? "pushState" : "replaceState"](null, "", location.search + hash);
    this.at = at;
    this.load();
  }

  async load({ all = "" } = {}) {
    this.loading?.abort();
    this.loading = new AbortController();
    const { signal } = this.loading;
    const name = encodeURIComponent(this.at);
    const flags = new URLSearchParams({ ...(this.onlyNew && { new: "1" }), ...(all && { all }) });
    try {
      const event = await get(`${this.base}/event/${name}`, signal);
      $("event").innerHTML = await event.text();
      $("event").closest(".right").scrollTop = all ? $("event").closest(".right").scrollTop : 0;
      const context = await get(`${this.base}/context/${name}?${flags}`, signal);
      $("context").innerHTML = await context.text();
      document.body.dataset.shown = this.at;
    } catch { /* replaced by a newer one, or said already */ }
  }

  // the filter

  setFilter(more) {
    Object.assign(this.filter, more);
    const words = this.query({});
    history.replaceState(null, "", `${location.pathname}${words ? `?${words}` : ""}${location.hash}`);
    this.showFilter();
    this.list.clear();
    this.list.total = -1;
    this.list.chunk(0).then(() => this.open(this.at || facts.at, { push: false })).catch(() => {});
  }

  showFilter() {
    if (document.activeElement !== $("search")) $("search").value = this.filter.q;
    for (const chip of document.querySelectorAll("[data-show]")) press(chip, chip.dataset.show === this.filter.show);
  }

  toggleNew() {
    this.onlyNew = !this.onlyNew;
    press($("only-new"), this.onlyNew);
    this.load();
  }

  compare() {
    const turn = Number($("event").querySelector("[data-turn]")?.dataset.turn || 0);
    if (turn > 1) location.href = `${this.base}/turns?then=${turn - 1}&now=${turn}`;
    else note("There is no turn before this one.");
  }

  async copy(form) {
    const answer = await get(`${this.base}/copy/${encodeURIComponent(this.at)}?as=${form}`);
    const text = await answer.text();
    if (!answer.ok) { note(text.replace(/<[^>]*>/g, " ").trim()); return; }
    await navigator.clipboard.writeText(text);
    note("Copied.");
  }

  async lanes(by = "duration") {
    for (const chip of document.querySelectorAll("[data-by]")) press(chip, chip.dataset.by === by);
    $("bars").innerHTML = await (await get(`${this.base}/lanes?by=${by}`)).text();
  }

  // a run that grows

  live() {
    const source = new EventSource(`${this.base}/live`);
    source.onmessage = async (message) => {
      const { over } = JSON.parse(message.data);
      if (over) { source.close(); $("follow").hidden = true; }
      this.list.clear();
      await this.list.chunk(Math.floor(this.list.first / CHUNK)).catch(() => {});
      if (this.follows || !this.at) this.open("last", { push: false });
      const head = await get(`${this.base}/head`);
      if (head.ok) $("top").innerHTML = await head.text();
    };
  }

  wire() {
    addEventListener("popstate", () => { const at = this.linked(); if (at && at !== this.at) this.open(at, { push: false }); });
    document.addEventListener("click", (event) => {
      const link = event.target.closest('a[href^="#/e/"]');
      if (link) { event.preventDefault(); this.open(decodeURIComponent(link.getAttribute("href").slice(4))); return; }
      const row = event.target.closest("#window [data-row]");
      if (row) { this.list.selected = Number(row.dataset.row); this.list.draw(); if (row.dataset.at) this.show(row.dataset.at, true); return; }
      const button = event.target.closest("button");
      if (!button) return;
      const { show, copy, by, all } = button.dataset;
      if (show !== undefined) this.setFilter({ show });
      else if (copy) this.copy(copy);
      else if (by) this.lanes(by);
      else if (all) this.load({ all });
      else if (button.id === "only-new") this.toggleNew();
      else if (button.id === "compare") this.compare();
      else if (button.id === "follow") this.toggleFollow();
      else if (button.id === "show-keys") $("keys").showModal();
      else if (button.id === "show-lanes") { $("lanes").hidden = !$("lanes").hidden; press(button, !$("lanes").hidden); if (!$("lanes").hidden) this.lanes(); }
    });
    let typing;
    $("search").addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.setFilter({ q: $("search").value }), 200);
    });
    document.addEventListener("keydown", (event) => this.key(event));
  }

  toggleFollow() {
    this.follows = !this.follows;
    press($("follow"), this.follows);
    if (this.follows) this.open("last", { push: false });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    if (event.target.matches("input")) {
      if (event.key === "Escape") { $("search").value = ""; this.setFilter({ q: "" }); }
      if (["Escape", "Enter"].includes(event.key)) { event.preventDefault(); $("list").focus(); }
      return;
    }
    const inList = document.activeElement === $("list") || document.activeElement === document.body;
    const moves = {
      j: () => this.step(1), k: () => this.step(-1),
      n: () => this.open("here", { move: "lane+" }), p: () => this.open("here", { move: "lane-" }),
      "]": () => this.open("here", { move: "turn+" }), "[": () => this.open("here", { move: "turn-" }),
      e: () => this.open("here", { move: "failure" }),
      g: () => this.open("first"), G: () => this.open("last"),
      d: () => this.toggleNew(), c: () => this.compare(), f: () => facts.live && this.toggleFollow(),
      "/": () => $("search").focus(), "?": () => $("keys").showModal(),
      ...(inList && {
        ArrowDown: () => this.step(1), ArrowUp: () => this.step(-1),
        PageDown: () => this.step(20), PageUp: () => this.step(-20),
        Home: () => this.open("first"), End: () => this.open("last"),
      }),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }
}

if (facts.page === "run") globalThis.reenact = new RunPage();
