// Values of a figure under the pointer, or under the arrow keys.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent), tip = document.getElementById("tip");
  const space = "http://www.w3.org/2000/svg";
  for (const canvas of document.querySelectorAll("[data-figure]")) {
    const all = figures[canvas.dataset.figure], narrow = canvas.querySelector(".narrow svg");
    let svg = canvas.querySelector("svg"), data = all;
    const choose = () => {
      const small = narrow && narrow.getBoundingClientRect().width > 0;
      svg = small ? narrow : canvas.querySelector("svg");
      data = small ? { ...all, ...all.narrow } : all;
    };
    const rule = document.createElementNS(space, "path");
    rule.setAttribute("class", "rule");
    let at = -1;
    const hide = () => { tip.hidden = true; rule.remove(); at = -1; };
    const show = (place) => {
      choose();
      at = Math.max(0, Math.min(data.x.length - 1, place));
      const x = data.x[at], y = data.y?.[at];
      rule.setAttribute("d", data.y ? `M${x - 7} ${y}a7 7 0 1 0 14 0a7 7 0 1 0 -14 0` : `M${x} ${data.top}V${data.bottom}`);
      svg.append(rule);
      const head = document.createElement("strong");
      head.textContent = data.heads[at];
      const lines = data.rows.filter(([, texts]) => texts[at] && texts[at] !== "–").map(([label, texts]) => {
        const line = document.createElement("span"), name = document.createElement("i"), number = document.createElement("b");
        name.textContent = label;
        number.textContent = texts[at];
        line.append(name, number);
        return line;
      });
      tip.replaceChildren(head, ...lines);
      tip.hidden = false;
      const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      const left = box.left + data.x[at] / view.width * box.width, top = box.top + (data.y ? data.y[at] + 10 : data.top) / view.height * box.height;
      const right = left + 14 + tip.offsetWidth < document.documentElement.clientWidth;
      tip.style.left = `${(right ? left + 12 : Math.max(4, left - 12 - tip.offsetWidth)) + scrollX}px`;
      tip.style.top = `${top + scrollY}px`;
    };
    canvas.addEventListener("pointermove", (event) => {
      choose();
      const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      const x = (event.clientX - box.left) / box.width * view.width, y = (event.clientY - box.top) / box.height * view.height;
      const distance = (number) => Math.hypot(data.x[number] - x, data.y ? data.y[number] - y : 0);
      let best = 0;
      data.x.forEach((_, number) => { if (distance(number) < distance(best)) best = number; });
      if (best !== at) show(best);
    });
    canvas.addEventListener("pointerleave", hide);
    canvas.addEventListener("blur", hide);
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) { event.preventDefault(); show(at < 0 ? (step > 0 ? 0 : data.x.length - 1) : at + step); }
      if (event.key === "Escape") hide();
    });
  }
})();
