"use strict";
// Reads the rows that stand in the page as data, and writes every one of them as text, never as HTML.
document.querySelectorAll(".rg-browse").forEach((root) => {
  const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const {columns, rows, details, say} = data;
  const SIZE = 50;
  const KINDS = {text: "rg-text", long: "rg-text rg-long", tag: "rg-text rg-tag", number: "rg-num"};
  const state = {words: [], picked: columns.map(() => null), by: -1, down: false, page: 0};
  let found = rows.map((_, i) => i);

  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const fold = (text) => String(text).normalize("NFKC").toLowerCase();
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, key) => values[key]);
  const haystack = rows.map((row) => fold(row.flat(2).filter((cell) => typeof cell === "string").join("\n")));
  const order = new Intl.Collator(document.documentElement.lang || "en", {numeric: true});

  function search() {
    found = rows.map((_, i) => i).filter((i) =>
      state.words.every((word) => haystack[i].includes(word)) &&
      state.picked.every((value, at) => value === null || rows[i][at] === value));
    if (state.by >= 0) {
      const at = state.by, sign = state.down ? -1 : 1, number = columns[at].kind === "number";
      const gone = (cell) => cell === null || (number && typeof cell === "string");
      found.sort((a, b) => {
        const x = rows[a][at], y = rows[b][at];
        if (gone(x) || gone(y)) return gone(x) - gone(y) || a - b;
        return sign * (number ? x - y : order.compare(x, y)) || a - b;
      });
    }
    state.page = 0;
    draw();
  }

  function cell(column, value, head) {
    const node = make(head ? "th" : "td", {class: KINDS[column.kind], dir: "auto"});
    if (head) node.setAttribute("scope", "row");
    if (column.kind === "number" && typeof value === "number") node.append(value.toFixed(3));
    else if (column.kind === "number" || value === null) {
      node.append("— ", make("span", {class: "rg-why"}, value || ""));
    } else node.append(value);
    return node;
  }

  function unfold(button, line, row) {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    button.firstChild.data = open ? "▸" : "▾";
    if (open) return line.nextSibling.remove();
    const list = make("dl");
    row[columns.length].forEach((text, at) => {
      if (text !== null) list.append(make("dt", {}, details[at]), make("dd", {dir: "auto"}, text));
    });
    line.after(make("tr", {class: "rg-open"}, make("td", {colspan: columns.length + 1}, list)));
  }

  function draw() {
    const pages = Math.max(1, Math.ceil(found.length / SIZE)), start = state.page * SIZE;
    body.replaceChildren(...found.slice(start, start + SIZE).map((i) => {
      const row = rows[i], button = make("button", {type: "button", "aria-expanded": "false"}, "▸");
      button.setAttribute("aria-label", fill(say.unfold, {name: row[0] || i + 1}));
      const line = make("tr", {}, make("td", {}, button), ...columns.map((c, at) => cell(c, row[at], at === 0)));
      button.addEventListener("click", () => unfold(button, line, row));
      return line;
    }));
    const last = Math.min(start + SIZE, found.length);
    told.textContent = fill(found.length ? say.shown : say.nothing,
      {first: start + 1, last, n: found.length.toLocaleString("en"), all: rows.length.toLocaleString("en")});
    back.disabled = state.page === 0;
    next.disabled = state.page >= pages - 1;
    heads.forEach((head, at) => {
      head.setAttribute("aria-sort", state.by !== at ? "none" : state.down ? "descending" : "ascending");
      head.querySelector("span").textContent = state.by !== at ? "" : state.down ? " ↓" : " ↑";
    });
  }

  const box = make("input", {type: "search", placeholder: say.search, "aria-label": say.search});
  let waiting = 0;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      state.words = fold(box.value).split(/\s+/).filter(Boolean);
      search();
    }, 120);
  });
  const tools = make("div", {class: "rg-tools"}, box);
  columns.forEach((column, at) => {
    if (column.kind !== "tag") return;
    const counts = new Map();
    rows.forEach((row) => counts.set(row[at], (counts.get(row[at]) || 0) + 1));
    const values = [...counts.keys()].filter((value) => value !== null).sort(order.compare);
    const pick = make("select", {"aria-label": column.label}, make("option", {value: ""}, `${column.label}: ${say.all}`));
    values.forEach((value, i) => pick.append(make("option", {value: i + 1}, `${value} (${counts.get(value)})`)));
    pick.addEventListener("change", () => {
      state.picked[at] = pick.value ? values[pick.value - 1] : null;
      search();
    });
    tools.append(pick);
  });
  const told = make("span", {class: "rg-note", role: "status"});
  const back = make("button", {type: "button"}, say.back), next = make("button", {type: "button"}, say.next);
  back.addEventListener("click", () => { state.page -= 1; draw(); });
  next.addEventListener("click", () => { state.page += 1; draw(); });
  const heads = columns.map((column, at) => {
    const button = make("button", {type: "button"}, column.label, make("span", {"aria-hidden": "true"}));
    button.addEventListener("click", () => {
      state.down = state.by === at && !state.down;
      state.by = at;
      search();
    });
    return make("th", {scope: "col", class: column.kind === "number" ? "rg-num" : ""}, button);
  });
  const body = make("tbody");
  const table = make("table", {class: "rg-table"},
    make("thead", {}, make("tr", {}, make("th", {scope: "col"}, make("span", {class: "rg-hidden"}, say.details)), ...heads)),
    body);
  const scroll = make("div", {class: "rg-scroll", tabindex: "0", role: "region", "aria-label": say.table}, table);
  root.replaceChildren(tools, scroll, make("div", {class: "rg-tools"}, back, next, told));
  draw();
});
