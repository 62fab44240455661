// Sliders of a model's parameters; what the model answers comes from Python.
const text = (seconds) => {
  if (seconds === null || seconds === undefined) return "–";
  const [scale, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e-3, "ms"] : seconds >= 1e-6 ? [1e-6, "µs"] : [1e-9, "ns"];
  return `${Number((seconds / scale).toPrecision(3)).toLocaleString("en")} ${unit}`;
};
const make = (parent, name, words, styles = {}, given = {}) => {
  const made = document.createElement(name);
  if (words !== undefined) made.textContent = words;
  Object.assign(made.style, styles);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  parent.append(made);
  return made;
};
function render({ model, el }) {
  const box = make(el, "div", undefined, { fontFamily: "system-ui, sans-serif", maxWidth: "42rem" });
  make(box, "strong", model.get("title"));
  const fields = model.get("fields"), controls = {};
  let wait = 0;
  const send = () => {
    clearTimeout(wait);
    wait = setTimeout(() => { model.set("asked", Object.fromEntries(fields.map(({ name }) => [name, Number(controls[name].number.value)]))); model.save_changes(); }, 80);
  };
  fields.forEach(({ name, low, high, whole }) => {
    const row = make(box, "label", undefined, { display: "grid", gridTemplateColumns: "8rem 7rem 1fr", gap: ".6rem", alignItems: "center", margin: ".3rem 0" });
    make(row, "span", name);
    const number = make(row, "input", undefined, {}, { type: "number", step: "any", "aria-label": name }), slider = make(row, "input", undefined, {}, { type: "range", min: 0, max: 1000, "aria-label": `${name}, slider` });
    const log = low > 0, from = log ? Math.log(low) : low, to = log ? Math.log(high) : high;
    controls[name] = { number, place: (value) => { slider.value = 1000 * ((log ? Math.log(value) : value) - from) / (to - from || 1); } };
    number.addEventListener("input", () => { if (number.value !== "") { controls[name].place(Number(number.value)); send(); } });
    slider.addEventListener("input", () => {
      const at = from + slider.value / 1000 * (to - from), value = log ? Math.exp(at) : at;
      number.value = whole ? Math.round(value) : Number(value.toPrecision(3));
      send();
    });
  });
  const said = make(box, "p", undefined, { margin: ".6rem 0 .3rem" }, { "aria-live": "polite" }), bar = make(box, "div", undefined, { display: "flex", height: "1.2rem" }), legend = make(box, "p", undefined, { margin: ".2rem 0", fontSize: ".9em" }), list = make(box, "table", undefined, { fontSize: ".9em" });
  const show = () => {
    const asked = model.get("asked"), answer = model.get("answer"), parts = answer.parts ?? {};
    for (const { name } of fields) if (document.activeElement !== controls[name].number) { controls[name].number.value = asked[name]; controls[name].place(asked[name]); }
    said.replaceChildren();
    make(said, "strong", answer.time === null ? "not predicted" : text(answer.time));
    if (answer.low !== null && answer.low !== undefined) said.append(` (${Math.round(100 * answer.level)}% interval ${text(answer.low)} to ${text(answer.high)})`);
    if (answer.reason) said.append(` Insufficient data: ${answer.reason}`);
    const total = Object.values(parts).reduce((sum, part) => sum + (part || 0), 0);
    bar.replaceChildren(); legend.replaceChildren(); list.replaceChildren();
    for (const [name, colour] of model.get("parts")) {
      const share = (parts[name] || 0) / total;
      if (!(share > 5e-4)) continue;
      make(bar, "span", undefined, { width: `${100 * share}%`, background: colour }, { title: `${name}: ${text(parts[name])}` });
      make(legend, "span", "■ ", { color: colour });
      legend.append(`${name} ${(100 * share).toFixed(0)}%  `);
    }
    for (const [name, seconds] of Object.entries(answer.kernels ?? {})) { const row = make(list, "tr"); make(row, "td", name); make(row, "td", text(seconds), { textAlign: "right", paddingLeft: "1rem" }); }
  };
  model.on("change:answer", show);
  show();
  return () => { clearTimeout(wait); model.off("change:answer", show); };
}
export default { render };
