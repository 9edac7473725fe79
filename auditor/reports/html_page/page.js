"use strict";
// What the page does beyond its tables: versions, filters, comparison, and the details of a cell.
// Text goes into the page as text alone (textContent); the policy of the page forbids the rest.
(() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

  /** An element with attributes and children; a string becomes text, null is left out. */
  function h(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") element.addEventListener(name, value);
      else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== ""));
    return element;
  }

  // ---- the document: values by position, what they are made of first (html_data.py) ----------

  function read(text) {
    const { shapes, nodes } = JSON.parse(text);
    const values = [];
    for (const node of nodes) {
      if (!Array.isArray(node)) { values.push(node); continue; }
      const parts = node.slice(1).map((position) => values[position]);
      if (node[0] === 0) { values.push(parts); continue; }
      values.push(Object.fromEntries(shapes[node[0] - 1].map((key, i) => [key, parts[i]])));
    }
    return values[values.length - 1];
  }

  const page = read($("#data").textContent);
  const versions = page.versions;
  for (const version of versions) version.byName = new Map(version.rows.map((row) => [row.architecture, row]));
  const cellOf = (v, architecture, platform) =>
    versions[v]?.byName.get(architecture)?.cells.find((cell) => cell.platform === platform) ?? null;
  const changesBetween = (from, to) => page.changes.find((pair) => pair.from === from && pair.to === to)?.changes ?? [];
  const classOf = { yes: "yes", "yes?": "maybe", unsafe: "unsafe", no: "no", stub: "stub", import: "import", absent: "absent", "n/a": "na", "?": "open" };
  const place = (item) => (item.line ? `${item.path}:${item.line}` : item.path);
  const badge = (verdict) => h("b", { class: `v ${classOf[verdict] ?? ""}` }, verdict);
  const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

  // ---- state, and its form in the address ----------------------------------------------------

  const newest = versions.length - 1;
  const state = { v: newest, base: null, q: "", verdicts: new Set(), platforms: new Set(), differ: false, changed: false, open: null };

  function fromAddress() {
    const hash = location.hash.slice(1);
    const direct = /^source-(\d+)$/.exec(hash);
    const asked = new URLSearchParams(direct ? "" : hash);
    const index = (name) => versions.findIndex((version) => version.name === name);
    const v = direct ? Number(direct[1]) : index(asked.get("v"));
    state.v = versions[v] ? v : newest;
    const base = index(asked.get("vs"));
    state.base = base >= 0 && base < state.v ? base : null;
    state.q = asked.get("q") ?? "";
    const list = (name) => new Set((asked.get(name) ?? "").split(",").filter(Boolean));
    state.verdicts = new Set([...list("is")].filter((name) => $$("[name=verdict]").some((box) => box.value === name)));
    state.platforms = new Set([...list("on")].filter((name) => $$("[name=platform]").some((box) => box.value === name)));
    state.differ = asked.has("differ");
    state.changed = asked.has("changed") && state.base !== null;
    const open = { architecture: asked.get("a"), platform: asked.get("p") };
    state.open = cellOf(state.v, open.architecture, open.platform) ? open : null;
  }

  function address(changed = {}) {
    const now = { ...state, ...changed };
    const parts = new URLSearchParams();
    if (versions.length > 1) parts.set("v", versions[now.v].name);
    if (now.base !== null && now.base < now.v) parts.set("vs", versions[now.base].name);
    if (now.q) parts.set("q", now.q);
    if (now.verdicts.size) parts.set("is", [...now.verdicts].join(","));
    if (now.platforms.size) parts.set("on", [...now.platforms].join(","));
    if (now.differ) parts.set("differ", "1");
    if (now.changed && now.base !== null) parts.set("changed", "1");
    if (now.open) { parts.set("a", now.open.architecture); parts.set("p", now.open.platform); }
    return `#${parts}`;
  }

  function change(changed) {
    Object.assign(state, changed);
    if (state.base !== null && state.base >= state.v) state.base = null;
    if (state.base === null) state.changed = false;
    if (state.open && !cellOf(state.v, state.open.architecture, state.open.platform)) state.open = null;
    history.replaceState(null, "", address());
    draw();
  }

  // ---- the matrix ----------------------------------------------------------------------------

  const sections = new Map($$("section.version").map((section) => [Number(section.dataset.version), section]));
  const prepared = new Map();

  /** Buttons into the cells of a table, once; what filters need to know of each line. */
  function prepare(v) {
    if (prepared.has(v)) return prepared.get(v);
    const section = sections.get(v);
    const platforms = versions[v].platforms;
    const lines = $$("table.matrix tbody tr", section).map((line, i) => {
      const row = versions[v].rows[i];
      const cells = [...line.cells].slice(1, 1 + platforms.length).map((td, column) => {
        const verdict = td.textContent;
        if (!td.classList.contains("c")) return { td, platform: platforms[column], verdict: "" };
        const button = h("button", { type: "button", tabindex: "-1", "aria-haspopup": "dialog" });
        td.replaceChildren(button);
        return { td, button, platform: platforms[column], verdict };
      });
      return { line, row, cells, text: `${row.architecture} ${line.cells[line.cells.length - 1].textContent}`.toLowerCase() };
    });
    const heads = $$("thead th.p", section);
    const result = { section, lines, heads, entry: null };
    prepared.set(v, result);
    return result;
  }

  /** What each cell says, and beside it what it was in the version that is compared with. */
  function fill(table) {
    for (const { row, cells } of table.lines) {
      for (const cell of cells) {
        if (!cell.button) continue;
        const before = state.base === null ? null : cellOf(state.base, row.architecture, cell.platform);
        const was = before?.verdict ?? (state.base === null ? cell.verdict : "new");
        cell.changed = was !== cell.verdict;
        cell.td.classList.toggle("changed", cell.changed);
        const said = `${row.architecture} on ${cell.platform}: ${cell.verdict}`;
        cell.button.setAttribute("aria-label", cell.changed ? `${said}, ${was === "new" ? "new" : `was ${was}`}` : said);
        cell.button.replaceChildren(...(cell.changed ? [h("span", { class: "was" }, was === "new" ? "new" : `${was} →`), " "] : []), cell.verdict);
      }
    }
  }

  function filter(table) {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const shows = (platform) => !state.platforms.size || state.platforms.has(platform);
    let shown = 0;
    for (const { line, cells, text } of table.lines) {
      const visible = cells.filter((cell) => cell.verdict && shows(cell.platform));
      const fits = words.every((word) => text.includes(word))
        && (!state.verdicts.size || visible.some((cell) => state.verdicts.has(cell.verdict)))
        && (!state.differ || new Set(visible.map((cell) => cell.verdict)).size > 1)
        && (!state.changed || visible.some((cell) => cell.changed));
      line.hidden = !fits;
      shown += fits;
      for (const cell of cells) {
        cell.td.hidden = !shows(cell.platform);
        cell.td.classList.toggle("match", state.verdicts.has(cell.verdict));
      }
    }
    for (const head of table.heads) head.hidden = !shows(head.dataset.platform);
    $("table.matrix", table.section)?.classList.toggle("filtered", state.verdicts.size > 0);
    const none = $(".none", table.section);
    if (none) none.hidden = shown > 0 || table.lines.length === 0;
    say(shown, table);
    enter(table);
  }

  function say(shown, table) {
    const total = table.lines.length;
    const columns = table.heads.filter((head) => !head.hidden).length;
    const where = columns === table.heads.length ? "" : `, ${columns} of ${plural(table.heads.length, "platform")}`;
    const text = shown === total && !where ? `${plural(total, "architecture")}` : `${shown} of ${plural(total, "architecture")}${where}`;
    if ($("#count").textContent !== text) $("#count").textContent = text;
    $("#reset").hidden = !(state.q || state.verdicts.size || state.platforms.size || state.differ || state.changed);
  }

  /** One cell can be reached by Tab; from there the arrows lead on (roving tabindex). */
  function enter(table, wanted = null) {
    const reachable = (cell) => cell.button && !cell.td.hidden;
    const all = table.lines.filter(({ line }) => !line.hidden).flatMap(({ cells }) => cells.filter(reachable));
    const next = wanted ?? (all.some((cell) => cell.button === table.entry) ? table.entry : all[0]?.button ?? null);
    if (table.entry) table.entry.tabIndex = -1;
    table.entry = next;
    if (next) next.tabIndex = 0;
  }

  const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], PageDown: [10, 0], PageUp: [-10, 0], Home: [0, -99], End: [0, 99] };

  function walk(event) {
    const step = steps[event.key];
    if (!step || event.altKey || event.metaKey || event.shiftKey) return;
    const table = prepare(state.v);
    const lines = table.lines.filter(({ line }) => !line.hidden);
    const grid = lines.map(({ cells }) => cells.filter((cell) => !cell.td.hidden));
    const y = grid.findIndex((cells) => cells.some((cell) => cell.button === event.target));
    if (y < 0) return;
    event.preventDefault();
    const within = (n, length) => Math.min(Math.max(n, 0), length - 1);
    const x = within(grid[y].findIndex((cell) => cell.button === event.target) + step[1], grid[y].length);
    const far = event.ctrlKey && step[1] ? Math.sign(step[1]) * lines.length : step[0];
    const target = grid[within(y + far, grid.length)][x];
    if (!target?.button) return;
    enter(table, target.button);
    target.button.focus();
    target.button.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function locate(button) {
    for (const { row, cells } of prepare(state.v).lines) {
      const cell = cells.find((candidate) => candidate.button === button);
      if (cell) return { architecture: row.architecture, platform: cell.platform };
    }
    return null;
  }

  function buttonOf(open) {
    const line = prepare(state.v).lines.find(({ row }) => row.architecture === open.architecture);
    return line?.cells.find((cell) => cell.platform === open.platform)?.button ?? null;
  }

  // ---- what changed --------------------------------------------------------------------------

  function compared() {
    const section = $("#compared");
    section.hidden = state.base === null;
    const chip = $("#changed-chip");
    if (chip) chip.hidden = state.base === null;
    if (state.base === null) return;
    $("h2", section).textContent = `From ${versions[state.base].name} to ${versions[state.v].name}`;
    const found = changesBetween(state.base, state.v);
    const groups = Object.entries(page.titles).map(([kind, title]) => [title, found.filter((item) => item.kind === kind)]);
    const blocks = groups.filter(([, items]) => items.length).map(([title, items]) =>
      h("details", { open: items.length <= 12 }, h("summary", {}, h("h3", {}, title), " ", h("span", {}, String(items.length))), h("ul", {}, items.map(changeLine))));
    $("div", section).replaceChildren(...(blocks.length ? blocks : [h("p", {}, "No cell changed.")]));
  }

  function changeLine(item) {
    const there = item.after !== "";
    const target = { v: there ? state.v : state.base, open: { architecture: item.architecture, platform: item.platforms[0] } };
    const link = h("a", { href: address(target), click: (event) => { if (there) { event.preventDefault(); show(target.open); } } }, h("code", {}, item.architecture));
    const part = (text) => (text in page.verdicts ? badge(text) : h("code", {}, text || "no head path"));
    const both = item.before !== "" && item.after !== "";
    return h("li", {}, link, " ", h("span", { class: "on" }, item.platforms.join(" ")), " ",
      both ? [part(item.before), " → ", part(item.after)] : part(item.before || item.after));
  }

  // ---- the details of a cell -----------------------------------------------------------------

  const dialog = $("#details");
  const narrow = matchMedia("(max-width: 64rem)");

  function show(open) {
    history.pushState(null, "", address({ open }));
    state.open = open;
    details(true);
  }

  function details(focus) {
    for (const current of $$("td button[aria-current]")) current.removeAttribute("aria-current");
    if (!state.open) { if (dialog.open) dialog.close(); document.body.classList.remove("opened"); return; }
    dialog.replaceChildren(...content(state.open.architecture, state.open.platform));
    if (!dialog.open) {
      if (narrow.matches) dialog.showModal();
      else dialog.show();
    }
    document.body.classList.add("opened");
    if (focus) dialog.scrollTop = 0;
    const button = buttonOf(state.open);
    if (button) { button.setAttribute("aria-current", "true"); enter(prepare(state.v), button); }
    if (!focus) return;
    button?.scrollIntoView({ block: "nearest" });
    $("#details-title").focus({ preventScroll: true });
  }

  function close() {
    const button = state.open && buttonOf(state.open);
    state.open = null;
    history.replaceState(null, "", address());
    details(false);
    const target = button?.offsetParent ? button : $("#search");
    target.focus();
  }

  function content(architecture, platform) {
    const version = versions[state.v];
    const cell = cellOf(state.v, architecture, platform);
    const concerns = (item) => item.architectures.includes(architecture);
    const here = (item) => concerns(item) && (!item.platforms.length || item.platforms.includes(platform));
    const chain = cell.evidence.filter((step) => step.kind !== "guard");
    const guards = cell.evidence.filter((step) => step.kind === "guard");
    return [
      h("div", { class: "top" },
        h("button", { type: "button", class: "close", "aria-label": "Close the details", click: close }, "×"),
        h("h2", { id: "details-title", tabindex: "-1" }, architecture, " ", h("span", {}, "on ", platform)),
        h("p", { class: "answer" }, badge(cell.verdict), " ", page.verdicts[cell.verdict]),
        h("p", { class: "sub" }, `${version.label}; hasattr: ${cell.hasattr === null ? "null" : cell.hasattr}`)),
      elsewhere("Platforms", version.platforms.map((name) => [name, state.v, name]), architecture, (name) => name === platform),
      versions.length > 1 ? elsewhere("Versions", versions.map((other, v) => [other.name, v, platform]).reverse(), architecture, (name) => name === version.name) : null,
      section("Why", why(cell, guards, version.capability)),
      section("Findings", version.findings.filter(here).map(finding), "ul"),
      section("Evidence", chain.map(step), "ol"),
      cell.error ? section("Imports that fail", cell.error.chain.map(step), "ol") : null,
      cell.head ? section("Head path", headPath(cell.head)) : null,
      section("Who drafts with it", version.callers.filter(concerns).map((caller) => drafter(caller, version.capability)), "ul"),
      section("Not decided", version.undecided.filter(here).map(undecided), "ul"),
    ].filter(Boolean);
  }

  /** The same architecture on other platforms or in other versions, as links. */
  function elsewhere(title, places, architecture, isHere) {
    const links = places.map(([name, v, platform]) => {
      const cell = cellOf(v, architecture, platform);
      if (!cell) return h("li", {}, h("span", {}, name, " ", h("i", {}, "—")));
      const target = { v, open: { architecture, platform } };
      const follow = (event) => { event.preventDefault(); change({ v, open: target.open }); $("#details-title").focus(); };
      return h("li", {}, h("a", { href: address(target), "aria-current": isHere(name) ? "true" : null, click: follow }, name, " ", badge(cell.verdict)));
    });
    return h("nav", { class: "elsewhere", "aria-label": title }, h("ul", {}, links));
  }

  function section(title, items, list = "div") {
    if (!items.length) return null;
    return h("section", {}, h("h3", {}, title), h(list, { class: list === "ol" ? "steps" : null }, items));
  }

  function why(cell, guards, capability) {
    const lines = [];
    if (cell.class) lines.push(pair("class", h("code", {}, `${cell.module}.${cell.class}`)));
    if (cell.owner) lines.push(pair("method from", h("code", {}, cell.owner)));
    if (cell.reason) lines.push(pair("because", cell.reason));
    if (cell.error) lines.push(pair("fails with", h("code", {}, cell.error.type), cell.error.message ? `: ${cell.error.message}` : ""));
    const said = new Map();
    for (const guard of guards) said.set(guard.note || guard.text, [...(said.get(guard.note || guard.text) ?? []), " ", at(guard)]);
    for (const [sentence, places] of said) lines.push(pair("at start-up", sentence, places));
    return lines.length ? [h("dl", {}, lines)] : [];
  }

  const pair = (term, ...value) => h("div", {}, h("dt", {}, term), h("dd", {}, value));
  const at = (item) => (item.path ? h("code", { class: "at" }, place(item)) : null);

  function step(item) {
    return h("li", {}, h("span", { class: "kind" }, item.kind), " ", at(item),
      item.text ? h("pre", {}, h("code", {}, item.text)) : null,
      item.note ? h("p", {}, item.note) : null);
  }

  function finding(item) {
    return h("li", { class: item.severity }, h("b", {}, `${item.code} ${item.severity}`), " ", item.message, " ", at(item));
  }

  function undecided(item) {
    return h("li", {}, at(item), " ", item.text ? h("code", {}, item.text) : null, " ", item.reason);
  }

  function drafter(caller, capability) {
    const name = caller.class.slice(caller.class.lastIndexOf(".") + 1);
    const never = !caller.calls.some((call) => call.note.startsWith(`${capability}(`));
    return h("li", {}, h("code", {}, name), `, method ${caller.method}`,
      caller.conditions.length ? `, where ${caller.conditions.join(" and ")}` : "",
      caller.open ? `, as far as known: ${caller.open}` : "", " ", at(caller.made),
      h("ul", {}, caller.calls.map((call) => h("li", {}, h("code", {}, call.note), " ", at(call))),
        never ? h("li", {}, `it never calls ${capability}`) : null));
  }

  const states = { proven: "holds", violated: "fails", assumed: "assumed" };

  function headPath(head) {
    const lines = [];
    if (head.shape) lines.push(pair("shape", head.shape));
    for (const path of [head.logits, head.tokens]) if (path) lines.push(pair(path.method, h("code", { class: "path" }, path.brief)));
    if (!head.tokens && head.fix) lines.push(pair("to provide it", head.fix));
    if (head.equivalence) lines.push(pair("equality", h("b", {}, head.equivalence), head.reason ? `: ${head.reason}` : ""));
    [head.logits, head.tokens].forEach((path, i) => { if (path && head.terms[i]) lines.push(pair(`${path.method}, in full`, h("code", {}, head.terms[i]))); });
    for (const item of head.conditions) lines.push(pair(states[item.state], item.text, " ", at(item)));
    if (head.returns.length) lines.push(pair("forward returns", head.returns.join("; ")));
    if (head.norm) lines.push(pair("normed", head.norm));
    for (const item of head.remarks) lines.push(pair("note", h("code", {}, item.text), " ", item.note, " ", at(item)));
    return [h("dl", {}, lines), ...[head.logits, head.tokens].filter(Boolean).map(ways)];
  }

  function ways(path) {
    return h("details", { class: "ways" }, h("summary", {}, `${path.method}: ${plural(path.ways.length, "way")} to the head`),
      path.ways.map((way) => h("div", { class: "way" },
        h("dl", {},
          way.guards.map((guard) => pair("if", h("code", {}, guard))),
          ["processor", "head", "hidden", "bias"].map((name) => (way[name] ? pair(name, h("code", {}, way[name])) : null)),
          way.post.map((post) => pair("then", h("code", {}, post))),
          pair("result", h("code", {}, way.result))),
        h("ol", { class: "steps" }, [...way.hops, ...way.checks, ...way.unknown].map(step)))));
  }

  // ---- everything together -------------------------------------------------------------------

  function draw() {
    for (const [v, section] of sections) section.classList.toggle("current", v === state.v);
    for (const link of $$(".versions a")) {
      if (Number(link.dataset.version) === state.v) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const bar of $$(".chart g")) bar.classList.toggle("current", Number(bar.dataset.version) === state.v);
    controls();
    compared();
    const table = prepare(state.v);
    fill(table);
    filter(table);
    details(false);
  }

  function controls() {
    const search = $("#search");
    if (search.value !== state.q) search.value = state.q;
    for (const box of $$("[name=verdict]")) box.checked = state.verdicts.has(box.value);
    for (const box of $$("[name=platform]")) box.checked = state.platforms.has(box.value);
    for (const name of ["differ", "changed"]) { const box = $(`[name=${name}]`); if (box) box.checked = state[name]; }
    const count = {};
    for (const row of versions[state.v].rows) for (const cell of row.cells) count[cell.verdict] = (count[cell.verdict] ?? 0) + 1;
    for (const small of $$("[data-count]")) small.textContent = count[small.dataset.count] ?? 0;
    const base = $("#base");
    if (!base) return;
    const earlier = versions.slice(0, state.v).map((version, v) => h("option", { value: String(v) }, version.name)).reverse();
    base.replaceChildren(h("option", { value: "" }, earlier.length ? "no other version" : "nothing earlier here"), ...earlier);
    base.disabled = !earlier.length;
    base.value = state.base === null ? "" : String(state.base);
  }

  const toggled = (set, value) => { const next = new Set(set); if (!next.delete(value)) next.add(value); return next; };

  $("#matrix").addEventListener("click", (event) => {
    const button = event.target.closest("td button");
    if (button) show(locate(button));
  });
  $("#matrix").addEventListener("keydown", walk);
  $("#search").addEventListener("input", (event) => change({ q: event.target.value.trim() }));
  $("#base")?.addEventListener("change", (event) => change({ base: event.target.value === "" ? null : Number(event.target.value) }));
  $("#reset").addEventListener("click", () => {
    change({ q: "", verdicts: new Set(), platforms: new Set(), differ: false, changed: false });
    $("#search").focus();
  });
  $(".tools").addEventListener("change", (event) => {
    const { name, value, checked } = event.target;
    if (name === "verdict") change({ verdicts: toggled(state.verdicts, value) });
    else if (name === "platform") change({ platforms: toggled(state.platforms, value) });
    else if (name === "differ" || name === "changed") change({ [name]: checked });
  });
  $(".versions")?.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (link) { event.preventDefault(); change({ v: Number(link.dataset.version) }); }
  });
  $(".chart")?.addEventListener("click", (event) => {
    const bar = event.target.closest("g");
    if (bar) change({ v: Number(bar.dataset.version) });
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && dialog.open) { event.preventDefault(); close(); }
  });
  dialog.addEventListener("cancel", (event) => { event.preventDefault(); close(); });
  $(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    (prepare(state.v).entry ?? $("#matrix")).focus();
  });
  const follow = () => {
    fromAddress();
    draw();
    if (state.open) details(true);
  };
  addEventListener("popstate", follow);
  addEventListener("hashchange", follow);
  for (const details of $$(".since")) details.open = false;
  follow();
})();
