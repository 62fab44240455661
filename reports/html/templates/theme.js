"use strict";
// Light and dark: the system's choice until the reader makes one, kept where the browser lets pages keep something.
(() => {
  const root = document.documentElement, button = document.getElementById("theme");
  root.classList.add("script");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const now = () => root.dataset.theme || (system.matches ? "dark" : "light");
  const name = () => { button.textContent = now() === "dark" ? "Light" : "Dark"; };
  try { const kept = localStorage.getItem("ranksight-theme"); if (kept === "dark" || kept === "light") root.dataset.theme = kept; } catch { /* no storage for files here */ }
  button.addEventListener("click", () => {
    root.dataset.theme = now() === "dark" ? "light" : "dark";
    try { localStorage.setItem("ranksight-theme", root.dataset.theme); } catch { /* the choice lasts for this page */ }
    name();
  });
  system.addEventListener("change", name);
  name();
})();
