// The small plots of a kernel, drawn when it is opened: points, model with its interval, and what the model misses.
(async () => {
  const holder = document.querySelector("script#series"), smaller = document.querySelector("script#smaller"), pages = document.querySelector(".pages");
  if (!holder || !window.DecompressionStream) return;
  const opened = (packed) => new Response(new Blob([Uint8Array.from(atob(packed.textContent), (c) => c.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  const data = JSON.parse(await opened(holder));
  if (smaller) pages.insertAdjacentHTML("beforeend", await opened(smaller));
  document.documentElement.classList.add("drawn");
  const rows = Numbers.unpack(data.codes, data.scale);
  const space = "http://www.w3.org/2000/svg", count = data.x.length, points = data.points.length;
  const W = 320, H = 168, left = 52, right = 310, top = 8, bottom = 118, low = 132, high = 158;
  const element = (parent, name, given) => {
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  };
  const label = (parent, x, y, words, anchor) => { element(parent, "text", { x, y, "text-anchor": anchor }).textContent = words; };
  const logarithmic = data.x[0] > 0;
  const span = [Math.min(data.x[0], ...data.points.map(([x]) => x)), Math.max(data.x[count - 1], ...data.points.map(([x]) => x))];
  const axis = (x) => {
    const [a, b, c] = logarithmic ? [Math.log(x), Math.log(span[0]), Math.log(span[1])] : [x, span[0], span[1]];
    return left + (c > b ? (a - b) / (c - b) : 0.5) * (right - left);
  };
  const { short } = Numbers;
  const rate = (share) => (share >= 100 ? `${Number(share.toPrecision(2))}×` : `${Number((100 * share).toPrecision(2))}%`);
  const draw = (number) => {
    const row = rows[number], unit = data.units[number], at = (block) => row.slice(block * count, (block + 1) * count);
    const curves = data.others.map((_, which) => [at(3 * which), at(3 * which + 1), at(3 * which + 2)]);
    const base = 3 * count * data.others.length, part = (block) => row.slice(base + block * points, base + (block + 1) * points);
    const values = part(0), ends = data.repeated ? [part(1), part(2)] : [values, values], fit = part(data.repeated ? 3 : 1);
    const figure = document.createElement("figure"), caption = document.createElement("figcaption");
    caption.textContent = data.names[number];
    const svg = element(figure, "svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
    figure.prepend(caption);
    const every = [...curves.flat(2), ...values, ...ends.flat()].filter(Number.isFinite);
    if (!every.length) { caption.textContent += ": no values"; svg.remove(); return figure; }
    let least = Math.min(...every), most = Math.max(...every);
    const log = logarithmic && least > 0 && most > 8 * least;
    if (log) { least /= 1.25; most *= 1.25; } else { const room = (most - least || Math.abs(most) || 1) * 0.12; least = least >= 0 && least - room < 0 ? 0 : least - room; most += room; }
    const y = (v) => bottom - (log ? Math.log(v / least) / Math.log(most / least) : (v - least) / (most - least)) * (bottom - top);
    element(svg, "rect", { class: "range", x: axis(data.trained[0]), y: top, width: Math.max(2, axis(data.trained[1]) - axis(data.trained[0])), height: bottom - top });
    const ticks = log ? decades(least, most) : [least, (least + most) / 2, most].map((v, k) => (k === 0 && least === 0 ? 0 : Number(v.toPrecision(most < 1.5 * least ? 3 : 2)))).filter((v) => v >= least && v <= most);
    for (const tick of ticks) { element(svg, "line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }); label(svg, left - 5, y(tick) + 4, Numbers.text(tick, unit), "end"); }
    curves.forEach(([middle, lower, upper], which) => {
      if (which === 0) {
        const shown = data.x.map((x, k) => [axis(x), lower[k], upper[k]]).filter(([, a, b]) => Number.isFinite(a) && Number.isFinite(b) && (!log || a > 0));
        if (shown.length > 1) element(svg, "path", { class: "band", d: "M" + [...shown.map(([x, , b]) => `${x.toFixed(1)} ${y(b).toFixed(1)}`), ...shown.reverse().map(([x, a]) => `${x.toFixed(1)} ${y(a).toFixed(1)}`)].join("L") + "Z" });
      }
      let pen = "", surePen = "";
      data.x.forEach((x, k) => {
        if (!Number.isFinite(middle[k]) || (log && middle[k] <= 0)) { return; }
        pen += `${pen ? "L" : "M"}${axis(x).toFixed(1)} ${y(middle[k]).toFixed(1)}`;
        if (Number.isFinite(lower[k])) surePen += `${surePen ? "L" : "M"}${axis(x).toFixed(1)} ${y(middle[k]).toFixed(1)}`;
      });
      if (pen && pen !== surePen) element(svg, "path", { class: `curve open c${which}`, d: pen });
      if (surePen) element(svg, "path", { class: `curve c${which}`, d: surePen });
    });
    const errors = values.map((v, k) => (v ? fit[k] / v - 1 : NaN));
    const worst = Math.max(0.01, ...errors.filter(Number.isFinite).map(Math.abs)), middle = (low + high) / 2;
    element(svg, "path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}M${left} ${middle}H${right}` });
    data.points.forEach(([x, which, trained], k) => {
      const tone = which < 0 ? "x" : which, kind = `dot c${tone} ${trained ? `d${tone}` : "fresh"}`, place = axis(x);
      if (which >= 0 && Number.isFinite(values[k]) && (!log || values[k] > 0)) {
        if (ends[1][k] > ends[0][k]) element(svg, "line", { class: `c${which}`, x1: place, x2: place, y1: y(ends[0][k]), y2: y(ends[1][k]) });
        const dot = element(svg, "circle", { class: kind, cx: place, cy: y(values[k]), r: 3.2 });
        element(dot, "title", {}).textContent = `${data.along} ${x}${data.others[which] ? `, ${data.others[which]}` : ""}: measured ${Numbers.text(values[k], unit)}, model ${Numbers.text(fit[k], unit)}${trained ? "" : ", not fitted to"}`;
      }
      if (Number.isFinite(errors[k])) {
        const dot = element(svg, "circle", { class: kind, cx: place, cy: middle - errors[k] / worst * (high - low) / 2, r: 2.4 });
        element(dot, "title", {}).textContent = `${data.along} ${x}: model ${errors[k] >= 0 ? "+" : "−"}${rate(Math.abs(errors[k]))}`;
      }
    });
    if (errors.some(Number.isFinite)) label(svg, left - 5, middle + 4, `±${rate(worst)}`, "end");
    for (const x of [data.x[0], data.trained[1], data.x[count - 1]].filter((v, k, all) => all.indexOf(v) === k)) label(svg, axis(x), H - 0.5, short(x), axis(x) > right - 12 ? "end" : "middle");
    svg.setAttribute("aria-label", `${data.names[number]} over ${data.along}: model from ${Numbers.text(curves[0][0][0], unit)} at ${data.x[0]} to ${Numbers.text(curves[0][0][count - 1], unit)} at ${data.x[count - 1]}; ${values.filter(Number.isFinite).length} measured points, missed by ${rate(worst)} at most`);
    return figure;
  };
  // What the kernel's time is made of, stacked, with the interval of the time without messages on top of them.
  const pieces = data.parts.length ? Numbers.unpack(data.part_codes, data.part_scale) : [];
  const stacked = (place, timed) => {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption"), row = pieces[place];
    const parts = data.parts.map(([name, tone], number) => [name, tone, row.slice(number * count, (number + 1) * count).map((v) => v || 0)]).filter(([, , values]) => values.some((v) => v > 0));
    const largest = Math.max(...parts.flatMap(([, , values]) => values));
    parts.splice(0, parts.length, ...parts.filter(([, , values]) => Math.max(...values) > 1e-3 * largest));
    if (!parts.length) return null;
    caption.textContent = "time by its parts";
    figure.append(caption);
    const total = data.x.map((_, k) => parts.reduce((sum, [, , values]) => sum + values[k], 0)), sent = data.x.map((_, k) => parts.reduce((sum, [name, , values]) => sum + (name === "communication" ? values[k] : 0), 0));
    const ends = timed === undefined ? [] : [1, 2].map((block) => rows[timed].slice(block * count, (block + 1) * count).map((v, k) => v + sent[k]));
    const most = 1.08 * Math.max(...total, ...ends.flat().filter((v) => Number.isFinite(v) && v < 4 * Math.max(...total))), y = (v) => high - Math.min(v, most) / most * (high - top);
    const svg = element(figure, "svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Time over ${data.along} by its parts; at ${data.x[count - 1]}: ${parts.map(([name, , values]) => `${name} ${Numbers.text(values[count - 1], "s")}`).join(", ")}` });
    for (const part of [0.25, 0.5, 0.75, 1]) { const v = part * most / 1.08; element(svg, "line", { class: "grid", x1: left, x2: right, y1: y(v), y2: y(v) }); label(svg, left - 5, y(v) + 4, Numbers.text(Number(v.toPrecision(2)), "s"), "end"); }
    const below = data.x.map(() => 0);
    let bounded = false;
    for (const [name, tone, values] of parts) {
      const above = values.map((v, k) => below[k] + v), path = [...data.x.map((x, k) => `${axis(x).toFixed(1)} ${y(above[k]).toFixed(1)}`), ...data.x.map((x, k) => `${axis(x).toFixed(1)} ${y(below[k]).toFixed(1)}`).reverse()];
      element(element(svg, "path", { class: `f${tone}`, fill: `#${tone}`, "fill-opacity": 0.75, d: `M${path.join("L")}Z` }), "title", {}).textContent = `${name}: ${Numbers.text(values[count - 1], "s")} at ${data.x[count - 1]}`;
      above.forEach((v, k) => { below[k] = v; });
    }
    for (const end of ends) { const pen = data.x.map((x, k) => [x, end[k]]).filter(([, v]) => Number.isFinite(v)).map(([x, v]) => `${axis(x).toFixed(1)} ${y(v).toFixed(1)}`); if (pen.length > 1) { element(svg, "path", { class: "axis end", d: `M${pen.join("L")}` }); bounded = true; } }
    element(svg, "path", { class: "axis", d: `M${left} ${top}V${high}H${right}` });
    for (const x of [data.x[0], data.trained[1], data.x[count - 1]].filter((v, k, every) => every.indexOf(v) === k)) label(svg, axis(x), H - 0.5, short(x), axis(x) > right - 12 ? "end" : "middle");
    const key = document.createElement("p");
    key.className = "keys";
    for (const [name, tone] of parts) { const swatch = element(key, "svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" }); element(swatch, "rect", { width: 10, height: 10, class: `f${tone}`, fill: `#${tone}` }); key.append(`${name} `); }
    if (bounded) key.append(`dashed: ${Math.round(100 * data.level)}% interval`);
    figure.append(key);
    return figure;
  };
  const decades = (least, most) => {
    const found = [], step = Math.max(1, Math.ceil(Math.log10(most / least) / 4));
    for (let power = Math.ceil(Math.log10(least)); 10 ** power <= most; power += step) found.push(10 ** power);
    if (found.length > 1) return found;
    return [1, 2, 5].flatMap((d) => [-1, 0, 1].map((k) => d * 10 ** (Math.floor(Math.log10(least)) + k))).filter((v) => v >= least && v <= most).sort((a, b) => a - b);
  };
  const legend = () => {
    const line = document.createElement("p");
    line.className = "legend";
    line.append(`Over ${data.along}. Lines: model, dashed where not predicted; band: ${Math.round(100 * data.level)}% interval; dots: measured, open where not fitted to; below: model / measured − 1.`);
    if (data.others.length > 1) data.others.forEach((words, which) => { const key = document.createElement("span"); key.className = `key k${which}`; line.append(key, words); });
    return line;
  };
  const fill = (details) => {
    const place = details.querySelector(".small");
    if (!place || place.childElementCount) return;
    const drawn = [...details.querySelectorAll("[data-series]")].map((row) => draw(Number(row.dataset.series)));
    const timed = [...details.querySelectorAll("[data-series]")].find((row) => row.cells[0].textContent === "time");
    const parts = details.dataset.place === undefined ? null : stacked(Number(details.dataset.place), timed && Number(timed.dataset.series));
    if (parts) drawn.unshift(parts);
    place.append(legend(), ...drawn);
    drawn.forEach(Take.figure);
    details.querySelectorAll(".scroll > table").forEach(Take.table);
  };
  const all = [...pages.children], FIRST = 40, more = document.querySelector("[data-open=rest]");
  if (more && all.length > FIRST) {
    for (const details of all.slice(FIRST)) details.hidden = true;
    more.textContent = `Show ${all.length - FIRST} smaller kernels`;
    more.addEventListener("click", () => { for (const details of all) details.hidden = false; more.remove(); });
  } else more?.remove();
  pages.addEventListener("toggle", ({ target }) => { if (target.open && all.includes(target)) fill(target); }, true);
  const follow = () => {
    const found = /^#k\d+$/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
    if (found) { Tabs.reveal(found); found.hidden = false; found.open = true; fill(found); found.scrollIntoView(); found.querySelector("summary").focus({ preventScroll: true }); }
  };
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => { const link = event.target.closest?.('a[href^="#k"]'); if (link && link.hash === location.hash) follow(); });
  follow();
  document.querySelector("[data-filter-pages]")?.addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    more?.remove();
    for (const details of all) details.hidden = !details.querySelector(".name").textContent.toLowerCase().includes(wanted);
  });
  document.querySelector('[data-open="first"]')?.addEventListener("click", () => { for (const details of all.filter((one) => !one.hidden).slice(0, 10)) details.open = true; });
  document.querySelector('[data-open="none"]')?.addEventListener("click", () => { for (const details of all) details.open = false; });
})();
