// What ipywidgets leaves out: names for a screen reader, and a sign that the kernel has not taken what was entered.
(() => {
  if (window.ragnbWidgets) return;
  const say = (node, key, value) => node.getAttribute(key) === value || node.setAttribute(key, value);
  const name = () => {
    for (const row of document.querySelectorAll(".rg-row")) {
      const label = row.querySelector("label")?.textContent ?? "";
      const flip = row.querySelector(".rg-flip")?.id;
      for (const handle of row.querySelectorAll(".noUi-handle")) {
        say(handle, "aria-label", label);
        flip ? say(handle, "aria-describedby", flip) : handle.removeAttribute("aria-describedby");
      }
      for (const button of row.querySelectorAll("button[title]")) {
        if (button.title) say(button, "aria-label", button.title);
      }
      for (const group of row.querySelectorAll(".widget-toggle-buttons > div")) {
        say(group, "role", "group");
        say(group, "aria-label", label);
      }
    }
    for (const live of document.querySelectorAll(".rg-live")) say(live, "aria-live", "polite");
  };
  let asked = 0;
  const soon = () => { asked ||= requestAnimationFrame(() => { asked = 0; name(); }); };
  window.ragnbWidgets = new MutationObserver(soon);
  window.ragnbWidgets.observe(document.body, { childList: true, subtree: true });
  name();

  // The fields of a box beside what the kernel says it holds of them. A field that is sent when it is left may
  // differ while somebody writes in it.
  const FIELDS = ".rg-row :is(.noUi-handle, input, textarea, .widget-toggle-buttons > div)";
  const differs = (field, held) => {
    if (field.matches(".noUi-handle")) return Math.abs(field.getAttribute("aria-valuetext") - held) > 0.0051;
    if (!field.matches("input, textarea")) return (field.querySelector(".mod-active")?.textContent.trim() ?? "") !== held;
    return field.value !== held && (field !== document.activeElement || field.closest(".rg-keys") !== null);
  };
  const since = new WeakMap();
  setInterval(() => {
    for (const box of document.querySelectorAll(".rg-editor")) {
      const held = JSON.parse(box.querySelector(".rg-held")?.dataset.held ?? "[]");
      const fields = [...box.querySelectorAll(FIELDS)];
      const waits = fields.length === held.length && fields.some((field, i) => differs(field, held[i]));
      if (!waits) since.delete(box);
      else if (!since.has(box)) since.set(box, Date.now());
      box.classList.toggle("rg-late", waits && Date.now() - since.get(box) > 2000);
    }
  }, 500);
})();
