// Packed numbers, and numbers as people read them.
const Numbers = (() => {
  const unpack = (codes, scale) => {
    const bytes = Uint8Array.from(atob(codes), (c) => c.charCodeAt(0));
    const view = new DataView(bytes.buffer), width = scale.length ? bytes.length / 2 / scale.length : 0;
    return scale.map(([low, high, log], row) => Array.from({ length: width }, (_, k) => {
      const code = view.getUint16(2 * (row * width + k), true);
      if (code === 65535) return NaN;
      const value = low + code / 65534 * (high - low);
      return log ? Math.exp(value) : value;
    }));
  };
  const large = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const small = [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"]];
  const text = (value, unit) => {
    if (!Number.isFinite(value)) return "–";
    if (value === 0) return `0 ${unit}`.trim();
    const size = Math.abs(value);
    if (unit === "s" && size >= 999.5) return `${Number(value.toPrecision(3)).toLocaleString("en")} s`;
    const table = size >= 1 || !unit ? large : small;
    const [scale, prefix] = table.find(([at]) => size >= at * 0.9995) ?? table[table.length - 1];
    const digits = Number((value / scale).toPrecision(3));
    return `${digits} ${prefix}${unit}`.trim();
  };
  const short = (x) => (x >= 10000 ? text(x, "").replace(" ", "") : String(Number(x.toPrecision(4))));
  // One unit for many values, that of the largest.
  const unit = (values, symbol) => {
    const most = Math.max(0, ...values.filter(Number.isFinite)), table = most >= 1 ? [[1, ""]] : small;
    const [scale, prefix] = table.find(([at]) => most >= at * 0.9995) ?? table[table.length - 1];
    const write = (value) => { const size = value / scale; return !Number.isFinite(value) ? "–" : size > 0 && size < 0.001 ? "<0.001" : size >= 999.5 ? Math.round(size).toLocaleString("en") : size.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3); };
    return { name: prefix + symbol, text: write };
  };
  return { unpack, text, short, unit };
})();
