// The page of a run. All HTML comes escaped from the server; this script fetches, places and moves.
import { Charts } from "/static/charts.js";
import { $, get, note, press } from "/static/common.js";
import { Playback } from "/static/playback.js";
import { CHUNK, List } from "/static/row_list.js";

const facts = document.body.dataset;

class RunPage {
  constructor() {
    this.base = `/run/${facts.key}`;
    const query = new URLSearchParams(location.search);
    this.filter = { show: query.get("show") || "", lane: query.get("lane") || "", q: query.get("q") || "" };
    this.onlyNew = false;
    this.at = "";
    this.list = new List((from, n) => this.rows(from, n));
    this.charts = new Charts(this.base, () => this.turn);
    this.playback = new Playback(this.base);
    this.wire();
    this.showFilter();
    this.open(this.linked() || facts.at, { push: false }).then(() => this.loaded).then(() => this.settle());
    if (facts.live) this.live();
  }

  // what takes a while comes after the first paint

  settle() {
    this.findings();
    this.work();
  }

  async findings() {
    const answer = await get(`${this.base}/findings`);
    if (answer.ok) $("found").innerHTML = await answer.text();
  }

  async work() { // each request does a little of what the server has still to read
    if (this.isWorking) return;
    this.isWorking = true;
    let now, before;
    try {
      do {
        const answer = await get(`${this.base}/work`);
        if (!answer.ok) { this.problem(await answer.text()); return; }
        now = await answer.json();
        const part = `${Math.floor(100 * now.share)} %`;
        this.busy = now.done ? "" : now.indexed ? `, ${part} of the turns summed up` : `, ${part} indexed`;
        this.showCount();
        if (before && before.version !== now.version) this.renew();
        before = now;
      } while (!now.done);
      const head = await get(`${this.base}/head`);
      if (head.ok) $("top").innerHTML = await head.text();
      this.charts.draw();
    } catch { /* said already */ } finally { this.isWorking = false; }
  }

  renew() { // rows may stand elsewhere now, and what was waited for may be there
    this.list.clear();
    this.list.draw();
    const again = this.waitsFor || this.at;
    this.waitsFor = "";
    if (again) this.open(again, { push: false });
  }

  problem(html) {
    $("count").textContent = html.replace(/<[^>]*>/g, " ").trim();
  }

  showCount() {
    if (!this.counted) return;
    const { total, events, done, seen } = this.counted;
    const part = done ? this.busy || "" : `, ${Math.floor((100 * seen) / Math.max(1, events))} % looked at`;
    $("count").textContent = `${this.isFiltered ? `${total.toLocaleString("en")} of ` : ""}${events.toLocaleString("en")} events${part}`;
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
    if (!answer.ok) { this.problem(await answer.text()); throw new Error("no rows"); }
    const found = await answer.json();
    if (filter !== JSON.stringify(this.filter)) throw new Error("another filter by now");
    this.counted = found;
    this.showCount();
    if (!found.done) {
      this.isPartial = true;
      clearTimeout(this.again);
      this.again = setTimeout(() => { this.list.clear(); this.list.chunk(Math.floor(this.list.first / CHUNK)).catch(() => {}); }, 150);
    } else if (this.isPartial) { // now it is known in which row the event stands
      this.isPartial = false;
      if (this.at) this.open(this.at, { push: false });
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
    if (!answer.ok) {
      $("event").innerHTML = await answer.text();
      $("context").textContent = "";
      if (!this.list.total) this.list.chunk(0).catch(() => {});
      return;
    }
    const found = await answer.json();
    if (found.wait) { this.waitsFor = at; note(found.wait); return; }
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
    this.loaded = this.load();
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
      if (document.querySelector(".right .wait")) this.waitsFor = this.at;
      this.charts.mark();
      this.playback.offer(this.at, $("event"));
    } catch { /* replaced by a newer one, or said already */ }
  }

  // the filter

  setFilter(more) {
    Object.assign(this.filter, more);
    const words = this.query({});
    history.replaceState(null, "", `${location.pathname}${words ? `?${words}` : ""}${location.hash}`);
    this.showFilter();
    this.list.reset();
    this.list.chunk(0).then(() => this.open(this.at || facts.at, { push: false })).catch(() => {});
  }

  showFilter() {
    if (document.activeElement !== $("search")) $("search").value = this.filter.q;
    for (const chip of document.querySelectorAll("[data-show]")) press(chip, chip.dataset.show === this.filter.show);
    $("clear-lane").hidden = !this.filter.lane;
    $("clear-lane").textContent = `lane ${this.filter.lane} ×`;
  }

  toggleNew() {
    this.onlyNew = !this.onlyNew;
    press($("only-new"), this.onlyNew);
    this.load();
  }

  get turn() {
    return Number($("event").querySelector("[data-turn]")?.dataset.turn || 0);
  }

  compare() {
    const { turn } = this;
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

  // a run that grows

  live() {
    const source = new EventSource(`${this.base}/live`);
    source.onmessage = async (message) => {
      const { over, gone } = JSON.parse(message.data);
      if (gone) { source.close(); this.problem(gone); note(gone); return; }
      if (over) { source.close(); $("follow").hidden = true; }
      this.list.clear();
      await this.list.chunk(Math.floor(this.list.first / CHUNK)).catch(() => {});
      if (this.follows || !this.at) this.open("last", { push: false });
      const head = await get(`${this.base}/head`);
      if (head.ok) $("top").innerHTML = await head.text();
      clearTimeout(this.soon);
      this.soon = setTimeout(() => this.settle(), over ? 0 : 3000);
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
      const { show, copy, all, lane } = button.dataset;
      if (show !== undefined) this.setFilter({ show });
      else if (copy) this.copy(copy);
      else if (lane !== undefined) this.setFilter({ lane: this.filter.lane === lane ? "" : lane });
      else if (all) this.load({ all });
      else if (button.id === "only-new") this.toggleNew();
      else if (button.id === "compare") this.compare();
      else if (button.id === "follow") this.toggleFollow();
      else if (button.id === "show-keys") $("keys").showModal();
      else if (button.id === "clear-lane") this.setFilter({ lane: "" });
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
      l: () => this.charts.toggle("lanes"), t: () => this.charts.toggle("plots"), s: () => this.playback.toggle(),
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
