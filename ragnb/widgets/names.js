// Sliders of ipywidgets have no name for a screen reader: theirs is the label in their row.
(() => {
  if (window.ragnbNames) return;
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
  window.ragnbNames = new MutationObserver(soon);
  window.ragnbNames.observe(document.body, { childList: true, subtree: true });
  name();
})();
