"use strict";
// Filters, finds and links the questions of a page; all of them can be read without it.
document.querySelectorAll(".rg-samples").forEach((root) => {
  const {say, rest, all, chips, filters} = JSON.parse(root.querySelector("script").textContent);
  const STEP = 200;
  const state = {chip: "", picked: {}, words: [], most: STEP};
  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, key) => values[key]);
  const fold = (text) => text.normalize("NFKC").toLowerCase();
  const count = (n) => n.toLocaleString("en");
  const questions = [...root.querySelectorAll("details.q")].map((node) => ({node, data: node.dataset}));
  // Questions too many to stand here whole: one line each, of their id, words, outcome, document and score.
  for (const [cells, data] of rest) questions.push({cells, data});
  const text = (q) => (q.text ??= fold(q.node ? q.node.textContent : q.cells.join("\n")));
  const node = (q) => {
    if (!q.node) {
      q.node = make("div", {class: "q rg-row"}, ...q.cells.map((cell) => make("span", {dir: "auto"}, cell)));
      more.before(q.node);
    }
    return q.node;
  };
  // "wrong", "right", "fixed" and "broken" are chips of their own; any other is the code of an outcome.
  const ofChip = {
    "": () => true, wrong: (d) => d.w === "1", right: (d) => d.w === "0",
    fixed: (d) => d.c === "fixed", broken: (d) => d.c === "broken",
  };
  const holds = (q, key, value) => !value || (q.data[key] || "").split("\n").includes(value);

  function apply() {
    const wanted = ofChip[state.chip] || ((d) => d.o === state.chip);
    const found = questions.filter((q) => wanted(q.data)
      && Object.entries(state.picked).every(([key, value]) => holds(q, key, value))
      && state.words.every((word) => text(q).includes(word)));
    const shown = new Set(found.slice(0, state.most));
    for (const q of questions) if (q.node) q.node.hidden = !shown.has(q);
    for (const q of shown) node(q).hidden = false;
    more.hidden = found.length <= state.most;
    told.textContent = fill(say.shown, {n: count(Math.min(found.length, state.most)), found: count(found.length), all: count(all)});
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === state.chip));
  }

  function pick(chip) { state.chip = chip; state.most = STEP; apply(); }

  const buttons = chips.map(([code, label, n]) => {
    const button = make("button", {type: "button", value: code}, `${label} ${count(n)}`);
    button.addEventListener("click", () => pick(code));
    return button;
  });
  const selects = Object.entries(filters).map(([key, [label, values]]) => {
    const select = make("select", {"aria-label": label}, make("option", {value: ""}, `${label}: ${say.any}`));
    for (const [value, words] of values) select.append(make("option", {value}, words));
    select.addEventListener("change", () => { state.picked[key] = select.value; apply(); });
    return [key, select];
  });
  const box = make("input", {type: "search", placeholder: say.search, "aria-label": say.search});
  let waiting = 0;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { state.words = fold(box.value).split(/\s+/).filter(Boolean); apply(); }, 120);
  });
  const told = root.querySelector(".rg-shown");
  const more = make("button", {type: "button"}, say.more);
  more.addEventListener("click", () => { state.most += STEP; apply(); });
  root.append(make("div", {class: "rg-tools"}, more));
  told.before(make("div", {class: "rg-tools", role: "group", "aria-label": say.filters}, ...buttons),
    make("div", {class: "rg-tools"}, ...selects.map(([, select]) => select), box));

  // A passage that several questions retrieved stands on the page once: here it is read where it is asked for.
  root.addEventListener("toggle", (event) => {
    for (const link of event.target.querySelectorAll("a.rg-again")) {
      const passage = document.getElementById(link.hash.slice(1)).querySelector(".rg-passage");
      link.parentNode.replaceWith(passage.cloneNode(true));
    }
  }, true);

  function reset(picked) {
    state.picked = picked, state.words = [], box.value = "";
    for (const [key, select] of selects) select.value = picked[key] || "";
  }

  function follow() {
    const [, kind, raw] = location.hash.match(/^#([qomdcs])=(.*)$/) || [];
    if (!kind) return false;
    const plain = (code) => { try { return decodeURIComponent(code); } catch { return code; /* a bare % is no code */ } };
    // Behind an outcome or a metric may stand the system whose questions are meant.
    const [first, ofSystem] = kind === "q" ? [raw] : raw.split("&s=");
    const value = plain(first), system = ofSystem === undefined ? {} : {s: plain(ofSystem)};
    if (kind === "q") {
      const target = document.getElementById(`q=${value}`);
      if (!target) return false;
      reset({});
      state.chip = "", state.most = Math.max(STEP, questions.length);
      apply();
      target.parentNode.open = true;
      target.parentNode.scrollIntoView();
      return true;
    }
    if (!questions.some((q) => holds(q, kind, value) && holds(q, "s", system.s))) return false;
    reset(kind === "o" || kind === "c" ? system : {...system, [kind]: value});
    pick(kind === "o" || kind === "c" ? value : "");
    root.closest("section").scrollIntoView();
    return true;
  }
  addEventListener("hashchange", follow);
  if (!follow()) pick(chips.length ? chips[0][0] : "");
});
document.querySelectorAll("nav details").forEach((contents) => {
  const narrow = matchMedia("(max-width: 1120px)");
  contents.open = !narrow.matches;
  narrow.addEventListener("change", () => { contents.open = !narrow.matches; });
});
