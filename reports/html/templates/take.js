// What readers take with them: commands by copying, tables as CSV, figures as SVG.
const Take = (() => {
  const slug = (text) => text.normalize("NFKD").replace(/[^A-Za-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60).toLowerCase();
  const save = (text, type, name, ending) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = [slug(document.title.split(":")[0]), slug(name)].filter(Boolean).join("-") + ending;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const button = (words, about, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "take";
    made.textContent = words;
    made.setAttribute("aria-label", `${words}: ${about}`);
    made.addEventListener("click", () => act(made));
    return made;
  };
  // A text that a spreadsheet would compute is quoted, as in the CSV files of the command line.
  const quoted = (cell) => {
    const number = cell.dataset.value, words = cell.querySelector("[title]")?.title ?? cell.textContent.replace(/\s+/g, " ").trim();
    const text = number !== undefined && number !== "" ? (Number.isNaN(Number(number)) ? "" : number) : /^[=+\-@']/.test(words) && Number.isNaN(Number(words)) ? `'${words}` : words;
    return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const csv = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => quoted(cell) + ",".repeat(cell.colSpan - 1)).join(",")).join("\n") + "\n";
  const drawn = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];
  // The page's styles stay behind: what they say is written into the figure, as it is seen.
  const svg = (shown) => {
    const copy = shown.cloneNode(true), parts = copy.querySelectorAll("*");
    shown.querySelectorAll("*").forEach((element, at) => {
      const style = getComputedStyle(element);
      for (const name of drawn) if (style.getPropertyValue(name)) parts[at].setAttribute(name, style.getPropertyValue(name));
      parts[at].removeAttribute("class");
    });
    const [, , width, height] = (shown.getAttribute("viewBox") ?? "0 0 720 320").split(/[ ,]+/);
    const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ width, height, fill: getComputedStyle(document.body).backgroundColor })) { ground.setAttribute(name, value); copy.setAttribute(name, value); }
    copy.removeAttribute("fill");
    copy.prepend(ground);
    return new XMLSerializer().serializeToString(copy);
  };
  const figure = (made) => {
    const shown = made.querySelector("svg"), caption = made.querySelector("figcaption");
    if (shown && caption) { const name = caption.textContent; caption.append(" ", button("SVG", name, () => save(svg(shown), "image/svg+xml", name, ".svg"))); }
  };
  const copied = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* pages from files may not, in some browsers */ }
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  };
  for (const code of document.querySelectorAll("pre > code")) {
    const text = code.textContent.trim();
    code.parentElement.after(button("Copy", text.slice(0, 60), async (made) => {
      made.textContent = (await copied(text)) ? "Copied" : "Select the text and copy it";
      setTimeout(() => { made.textContent = "Copy"; }, 2000);
    }));
  }
  const table = (made) => {
    const name = made.parentElement.getAttribute("aria-label") ?? "table";
    made.parentElement.after(button("CSV", name, () => save(csv(made), "text/csv", name, ".csv")));
  };
  // Kernels' own get theirs when they are opened.
  document.querySelectorAll(".scroll > table:not(.metrics)").forEach(table);
  document.querySelectorAll("figure").forEach(figure);
  return { figure, table };
})();
