// Any configuration: between the values of a grid of the model's answers, in logarithms; a server is asked for its own.
(() => {
  const holder = document.getElementById("grid");
  if (!holder) return;
  const data = JSON.parse(holder.textContent), axes = data.axes, rows = Numbers.unpack(data.codes, data.scale), space = "http://www.w3.org/2000/svg";
  const logs = axes.map(({ values }) => values.map(Math.log)), shape = axes.map(({ values }) => values.length);
  const table = rows.map((row, number) => (data.scale[number][2] ? row.map(Math.log) : row));
  const make = (parent, name, given, words) => {
    const made = parent.namespaceURI === space || name === "svg" ? document.createElementNS(space, name) : document.createElement(name);
    for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
    if (words !== undefined) made.textContent = words;
    parent.append(made);
    return made;
  };
  const cell = (nodes, at) => { let k = 0; while (k < nodes.length - 2 && at >= nodes[k + 1]) k++; return k; };
  // Hermite's cubic, with slopes of the parabola through three neighbours: as ranksight/reports/grid.py.
  const curve = (nodes, values, at) => {
    const n = nodes.length;
    if (n === 1) return values[0];
    const k = cell(nodes, at), h = (j) => nodes[j + 1] - nodes[j], d = (j) => (values[j + 1] - values[j]) / h(j);
    const slope = (j) => {
      let m = n === 2 ? d(0) : j === 0 ? d(0) + (d(0) - d(1)) * h(0) / (h(0) + h(1)) : j === n - 1 ? d(n - 2) + (d(n - 2) - d(n - 3)) * h(n - 2) / (h(n - 2) + h(n - 3)) : (h(j) * d(j - 1) + h(j - 1) * d(j)) / (h(j - 1) + h(j));
      return Number.isFinite(m) ? m : d(k);
    };
    const t = (at - nodes[k]) / h(k);
    if (t === 0) return values[k];
    if (t === 1) return values[k + 1];
    return values[k] * (1 + 2 * t) * (1 - t) ** 2 + values[k + 1] * t * t * (3 - 2 * t) + h(k) * (slope(k) * t * (1 - t) ** 2 - slope(k + 1) * t * t * (1 - t));
  };
  const exactly = (nodes, at) => nodes.findIndex((node) => Math.abs(node - at) < 1e-9);
  const along = (row, at) => {
    const last = shape[shape.length - 1], lines = [];
    for (let j = 0; j < table[row].length; j += last) lines.push(curve(logs[logs.length - 1], table[row].slice(j, j + last), at[at.length - 1]));
    const value = logs.length > 1 ? curve(logs[0], lines, at[0]) : lines[0];
    return data.scale[row][2] ? Math.exp(value) : value;
  };
  const first = { parts: 5 + data.charges.length, kernels: 5 + data.charges.length + data.parts.length };
  const far = (values) => axes.filter(({ values: nodes }, k) => values[k] < nodes[0] * (1 - 1e-9) || values[k] > nodes[nodes.length - 1] * (1 + 1e-9)).map(({ name }) => name);
  const answer = (values) => {
    if (!values.every((v) => v > 0 && Number.isFinite(v))) return { mark: "Give numbers above 0." };
    if (axes.some(({ name }, k) => name === "ranks" && values[k] % 1)) return { mark: "Give a whole number of ranks." };
    const outside = far(values);
    if (outside.length) return { mark: `Not supported here: ${outside.join(" and ")} beyond the values that this page holds. The command below asks the model.` };
    const at = values.map(Math.log), places = logs.map((nodes, k) => exactly(nodes, at[k]));
    let corners = [0];
    logs.forEach((nodes, k) => { const here = places[k] >= 0 ? [places[k]] : [cell(nodes, at[k]), cell(nodes, at[k]) + 1]; corners = corners.flatMap((corner) => here.map((j) => corner * nodes.length + j)); });
    const unknown = corners.map((corner) => data.reason[corner]).find((reason) => reason);
    const sum = (name) => axes.reduce((all, axis, k) => all + (places[k] >= 0 ? 0 : axis[name][cell(logs[k], at[k])]), 0), missed = sum("missed");
    const notes = [];
    if (unknown) notes.push(`Not supported by the data: ${data.reasons[unknown]}.`);
    if (missed > data.marked) notes.push(`Interpolated, and more than ${100 * data.marked}% off the model in places near here: the command below asks the model itself.`);
    axes.forEach(({ whole, name }, k) => { if (whole && values[k] % 1) notes.push(`${name} took whole numbers in the runs.`); });
    return { time: along(0, at), low: unknown ? NaN : along(1, at), high: unknown ? NaN : along(2, at), hours: along(3, at), efficiency: along(4, at), charges: data.charges.map((name, k) => [name, along(5 + k, at)]), parts: data.parts.map((_, k) => Math.max(0, along(first.parts + k, at))), kernels: data.kernels.map((kernel, k) => [...kernel, along(first.kernels + k, at)]), mark: notes.join(" "), about: sum("loose") > data.about, supported: !unknown };
  };
  const here = (id) => document.getElementById(id);
  const fields = axes.map((_, k) => here(`ask-${k}`)), sliders = axes.map((_, k) => document.querySelector(`[data-slide="${k}"]`));
  const place = ({ name }, value) => (name === "ranks" ? `${value.toLocaleString("en")} rank${value === 1 ? "" : "s"}` : `${name} ${Number(value.toPrecision(6)).toLocaleString("en")}`);
  const percent = (share) => (share > 0 && share < 0.0005 ? "<0.1%" : Number.isFinite(share) ? `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%` : "–");
  const number = (value) => (value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3))));
  // Parameters that varied with the first one follow it, as a power of it or another function.
  const follow = (value) => data.tied.map(([name, values]) => { const found = Math.exp(curve(logs[0], values.map(Math.log), Math.log(value))); return { name, value: Math.abs(found - Math.round(found)) < 1e-4 * found ? Math.round(found) : Number(found.toPrecision(6)) }; }).filter(({ value: found }) => Number.isFinite(found));
  const advice = (values) => {
    if (data.along !== "ranks" || !Number.isFinite(rows[4].find(Number.isFinite))) return "";
    let best = 0, why = 0;
    for (const ranks of data.candidates) {
      const found = answer([ranks, ...values.slice(1)]);
      if (found.supported && found.efficiency >= data.threshold) { best = ranks; why = found.efficiency; }
    }
    return best ? `Ask for ${place(axes[0], best)} because it is the most tried here with an efficiency of ${percent(data.threshold)} or more (${percent(why)}).` : `No number of ranks tried here has an efficiency of ${percent(data.threshold)} or more.`;
  };
  const show = (values, said, source) => {
    const line = here("ask-time"), where = [...axes.map((axis, k) => place(axis, values[k])), ...follow(values[0]).map((tied) => place(tied, tied.value)), data.held].filter(Boolean).join(", ");
    line.replaceChildren();
    line.dataset.time = said.time ?? "";
    line.dataset.marked = said.mark ? "yes" : "";
    if (Number.isFinite(said.time)) {
      make(line, "strong", {}, Numbers.text(said.time, "s"));
      line.append(` at ${where}${Number.isFinite(said.low) ? ` (${Math.round(100 * data.level)}% interval ${said.about ? "about " : ""}${Numbers.text(said.low, "s")} to ${Numbers.text(said.high, "s")})` : ""}`);
    } else line.append(`No time at ${where}`);
    here("ask-mark").textContent = [said.mark, source].filter(Boolean).join(" ");
    const facts = here("ask-facts"), fact = (name, words) => { const group = make(facts, "div", {}); make(group, "dt", {}, name); make(group, "dd", {}, words); };
    facts.replaceChildren();
    if (Number.isFinite(said.efficiency)) fact("Efficiency", percent(said.efficiency));
    if (Number.isFinite(said.hours) && Number.isFinite(said.time)) { const small = said.hours < data.least; fact(`Core-${small ? "seconds" : "hours"} a run`, number(said.hours * (small ? 3600 : 1))); }
    for (const [name, value] of said.charges ?? []) if (Number.isFinite(value) && Number.isFinite(said.time)) fact(`${name === "kWh" ? "Energy" : "Cost"} a run, ${name}`, number(value));
    const words = said.supported ? advice(values) : "";
    if (words) fact("Rank count", words);
    const parts = here("ask-parts"), total = (said.parts ?? []).reduce((sum, part) => sum + (part || 0), 0);
    parts.replaceChildren();
    if (total > 0) {
      const known = data.parts.map(([name, tone], k) => [name, tone, said.parts[k] / total]).filter(([, , share]) => share > 5e-4);
      const svg = make(parts, "svg", { viewBox: "0 0 1000 28", preserveAspectRatio: "none", role: "img", class: "stack", "aria-label": known.map(([name, , share]) => `${name} ${percent(share)}`).join(", ") });
      let left = 0;
      for (const [name, tone, share] of known) { make(make(svg, "rect", { x: left, y: 0, width: 1000 * share, height: 28, class: `f${tone}`, fill: `#${tone}` }), "title", {}, `${name}: ${Numbers.text(share * total, "s")}, ${percent(share)}`); left += 1000 * share; }
      const legend = make(parts, "p", { class: "legend" });
      for (const [name, tone, share] of known) { const key = make(make(legend, "span", {}), "svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" }); make(key, "rect", { width: 10, height: 10, class: `f${tone}`, fill: `#${tone}` }); key.parentElement.append(`${name} ${percent(share)}`); }
    }
    const body = here("ask-kernels"), largest = (said.kernels ?? []).filter(([, , time]) => time > 0).sort(([, , a], [, , b]) => b - a).slice(0, 10);
    const unit = Numbers.unit(largest.map(([, , time]) => time), "s");
    here("ask-unit").textContent = `Time, ${unit.name}`;
    body.replaceChildren();
    for (const [name, page, time] of largest) {
      const row = make(body, "tr", {}), head = make(row, "th", { scope: "row" });
      make(page >= 0 ? make(head, "a", { href: `#k${page}`, class: "name" }) : head, "bdi", {}, name);
      make(row, "td", { class: "num" }, unit.text(time));
      make(row, "td", { class: "num" }, percent(time / total));
      make(make(row, "td", {}), "meter", { min: 0, max: 1, value: Math.min(1, time / total), "aria-label": `${percent(time / total)} of the time` });
    }
    here("ask-command").textContent = `${data.command}${axes.map(({ name }, k) => ` --${name} ${values[k]}`).join("")}${follow(values[0]).map(({ name, value }) => ` --${name} ${value}`).join("")}`;
    frame(values);
  };
  let asked = 0, wait = 0;
  const live = (values) => {
    if (!data.live) return;
    const now = ++asked;
    clearTimeout(wait);
    wait = setTimeout(async () => {
      try {
        const said = await fetch(`answer${location.search}${axes.map(({ name }, k) => `&${encodeURIComponent(name)}=${values[k]}`).join("")}`);
        const found = await said.json();
        if (now !== asked) return;
        show(values, found.error ? { mark: found.error } : { ...found, charges: Object.entries(found.charges), kernels: data.kernels.map((kernel, k) => [...kernel, found.kernels[k]]), time: found.time ?? NaN, low: found.low ?? NaN, high: found.high ?? NaN, hours: found.hours ?? NaN, efficiency: found.efficiency ?? NaN }, found.error ? "" : "Answered by the model.");
      } catch { if (now === asked) here("ask-mark").textContent += " The server does not answer: values are interpolated."; }
    }, 150);
  };
  const update = () => {
    const values = fields.map((field) => Number(field.value));
    values.forEach((value, k) => { if (value > 0) sliders[k].value = 1000 * (Math.log(value) - logs[k][0]) / (logs[k].at(-1) - logs[k][0] || 1); sliders[k].setAttribute("aria-valuetext", place(axes[k], value)); });
    show(values, answer(values));
    live(values);
  };
  // A slider stops at the grid's own values where they are near, at whole numbers where the runs had those.
  const slide = (k) => {
    const at = logs[k][0] + sliders[k].value / 1000 * (logs[k].at(-1) - logs[k][0]), near = axes[k].values.find((_, j) => Math.abs(logs[k][j] - at) < 0.012 * (logs[k].at(-1) - logs[k][0]));
    fields[k].value = near ?? (axes[k].whole ? Math.round(Math.exp(at)) : Number(Math.exp(at).toPrecision(3)));
    update();
  };
  let frame = () => {};
  const map = here("ask-map");
  if (map && axes.length === 2) {
    const W = 720, H = 280, left = 76, bottom = 46, [across, up] = shape, wide = (W - left - 8) / across, high = (H - bottom - 8) / up;
    const svg = make(map, "svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Predicted time over ${axes[0].name} and ${axes[1].name}` });
    const known = table[0].filter(Number.isFinite), least = Math.min(...known), most = Math.max(...known), label = (x, y, words, anchor) => make(svg, "text", { x, y, "text-anchor": anchor, "font-size": 11, fill: "currentColor" }, words);
    const choose = (i, j) => { [i, j].forEach((k, axis) => { fields[axis].value = axes[axis].values[k]; }); update(); };
    const hatch = make(make(svg, "defs", {}), "pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    make(hatch, "line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "hatch" });
    for (let i = 0; i < across; i++) for (let j = 0; j < up; j++) {
      const k = i * up + j, box = { x: left + i * wide, y: 8 + (up - 1 - j) * high, width: wide - 1, height: high - 1 };
      const rect = make(svg, "rect", { ...box, class: "f0072b2 cell", fill: "#0072b2", "fill-opacity": Number.isFinite(table[0][k]) ? 0.06 + 0.54 * (most > least ? (table[0][k] - least) / (most - least) : 0.5) : 0 });
      make(rect, "title", {}, `${place(axes[0], axes[0].values[i])}, ${place(axes[1], axes[1].values[j])}: ${Numbers.text(rows[0][k], "s")}${data.reason[k] ? `, not predicted: ${data.reasons[data.reason[k]]}` : ""}`);
      rect.addEventListener("click", () => choose(i, j));
      if (data.reason[k]) make(svg, "rect", { ...box, fill: "url(#hatch)", "pointer-events": "none" });
      else if (wide > 48 && high > 15) make(svg, "text", { x: box.x + wide / 2, y: box.y + high / 2 + 4, "text-anchor": "middle", "font-size": 11, fill: "currentColor", "pointer-events": "none" }, Numbers.text(rows[0][k], "s"));
    }
    axes[0].values.forEach((x, i) => { if (wide > 34 || i % Math.ceil(34 / wide) === 0) label(left + (i + 0.5) * wide, H - 28, Numbers.short(x), "middle"); });
    axes[1].values.forEach((y, j) => { if (high > 14 || j % Math.ceil(14 / high) === 0) label(left - 6, 8 + (up - 0.5 - j) * high + 4, Numbers.short(y), "end"); });
    label(left + (W - 8 - left) / 2, H - 8, axes[0].name, "middle");
    make(svg, "text", { x: 14, y: 8 + (H - bottom - 8) / 2, "text-anchor": "middle", "font-size": 11, fill: "currentColor", transform: `rotate(-90 14 ${8 + (H - bottom - 8) / 2})` }, axes[1].name);
    const mark = make(svg, "rect", { fill: "none", class: "frame", "pointer-events": "none" });
    const cells = (values) => values.map((value, k) => { let best = 0; logs[k].forEach((node, j) => { if (Math.abs(node - Math.log(value)) < Math.abs(logs[k][best] - Math.log(value))) best = j; }); return best; });
    frame = (values) => { if (!values.every((value) => value > 0)) return; const [i, j] = cells(values); for (const [name, value] of Object.entries({ x: left + i * wide, y: 8 + (up - 1 - j) * high, width: wide - 1, height: high - 1 })) mark.setAttribute(name, value); };
    map.addEventListener("keydown", (event) => {
      const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!step) return;
      event.preventDefault();
      const now = cells(fields.map((field) => Number(field.value)));
      choose(...now.map((k, axis) => Math.max(0, Math.min(shape[axis] - 1, k + step[axis]))));
    });
  }
  fields.forEach((field) => field.addEventListener("input", update));
  sliders.forEach((slider, k) => slider.addEventListener("input", () => slide(k)));
  here("ask-form").addEventListener("submit", (event) => event.preventDefault());
  update();
})();
