// Tables that sort by a click on a head, and are filtered by name and by the value of a column.
(() => {
  const value = (cell, numeric) => {
    if (!numeric) return cell.textContent.trim().toLowerCase();
    const number = parseFloat(cell.dataset.value ?? cell.textContent.replace(/,/g, ""));
    return Number.isNaN(number) ? -Infinity : number;
  };
  // A column of which no cell says anything is left out.
  const bare = new Set(["", "–"]);
  for (const table of document.querySelectorAll("main table")) {
    const rows = [...table.tBodies[0].rows];
    if (!rows.length || rows.some((row) => [...row.cells].some((cell) => cell.colSpan > 1))) continue;
    for (let column = table.tHead.rows[0].cells.length - 1; column > 0; column--)
      if (rows.every((row) => bare.has(row.cells[column].textContent.trim()) && !row.cells[column].firstElementChild)) for (const row of table.rows) row.cells[column].remove();
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    table.tHead.querySelectorAll("th").forEach((head, column) => {
      const button = document.createElement("button"), numeric = head.classList.contains("num");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const down = before ? before === "ascending" : numeric;
        for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0], rows = [...body.rows].map((row) => [value(row.cells[column], numeric), row]);
        rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
  const filter = (id) => {
    const table = document.getElementById(id);
    const text = document.querySelector(`[data-filter="${id}"]`), choice = document.querySelector(`[data-filter-column="${id}"]`);
    const wanted = text ? text.value.trim().toLowerCase() : "";
    const column = choice ? [...table.tHead.rows[0].cells].findIndex((head) => head.dataset.name === choice.dataset.column) : -1;
    let seen = 0;
    for (const row of table.tBodies[0].rows) {
      const name = row.cells[0].querySelector("[title]")?.title ?? row.cells[0].textContent;
      const other = !choice?.value || (row.cells[column].dataset.key ?? row.cells[column].textContent.trim()) === choice.value;
      row.hidden = !(other && name.toLowerCase().includes(wanted));
      seen += row.hidden ? 0 : 1;
    }
    const count = document.querySelector(`[data-count="${id}"]`);
    if (count) count.textContent = `${seen} of ${table.tBodies[0].rows.length}`;
  };
  for (const field of document.querySelectorAll("[data-filter]")) { field.addEventListener("input", () => filter(field.dataset.filter)); filter(field.dataset.filter); }
  for (const field of document.querySelectorAll("[data-filter-column]")) field.addEventListener("change", () => filter(field.dataset.filterColumn));
})();
