// Line charts as SVG: logarithmic upwards, one colour per line, dashed once the colours are used up.

function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const digit of high / low < 30 ? [1, 2, 5] : [1]) {
      const value = digit * 10 ** power;
      if (value >= low && value <= high) ticks.push(value);
    }
  }
  const every = Math.ceil(ticks.length / 7); // many decades: not all of them
  return ticks.filter((_, at) => at % every === 0);
}

function linearTicks(low, high) {
  const raw = (high - low || 1) / 5, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((value) => value >= raw);
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * step; value += step) ticks.push(value);
  return ticks;
}

function shortNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e4 || size < 1e-3 ? value.toExponential(0) : String(+value.toPrecision(2));
}

function svgElement(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// lines: [{name, x, y, colour, dashed}]; marked: a place on the x axis, or null.
function drawChart(place, { title, xLabel, lines, logX = false, marked = null }) {
  const width = 480, height = 280, left = 56, right = 12, top = 26, bottom = 40;
  const usable = (value, log) => value !== null && Number.isFinite(value) && (!log || value > 0);
  const points = lines.map((line) =>
    line.x.map((x, at) => [x, line.y[at]]).filter(([x, y]) => usable(x, logX) && usable(y, true)));
  const all = points.flat();
  const svg = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  if (!all.length) return place.replaceChildren(svg);
  const extent = (which) => [Math.min(...all.map((p) => p[which])), Math.max(...all.map((p) => p[which]))];
  const [xLow, xHigh] = extent(0);
  let [yLow, yHigh] = extent(1);
  [yLow, yHigh] = [yLow / 1.15, yHigh * 1.15];
  const scale = (value, low, high, log) =>
    (log ? Math.log(value / low) / (Math.log(high / low) || 1) : (value - low) / (high - low || 1));
  const atX = (x) => left + (width - left - right) * scale(x, xLow, xHigh, logX);
  const atY = (y) => height - bottom - (height - top - bottom) * scale(y, yLow, yHigh, true);
  const add = (name, attributes, text) => svg.append(svgElement(name, attributes, text));
  add("text", { x: left, y: 14, "font-weight": 600 }, title);
  for (const y of logTicks(yLow, yHigh)) {
    add("line", { class: "axis", x1: left, x2: width - right, y1: atY(y), y2: atY(y) });
    add("text", { x: left - 6, y: atY(y) + 4, "text-anchor": "end" }, shortNumber(y));
  }
  for (const x of logX ? logTicks(xLow, xHigh) : linearTicks(xLow, xHigh)) {
    add("line", { class: "axis", x1: atX(x), x2: atX(x), y1: height - bottom, y2: height - bottom + 4 });
    add("text", { x: atX(x), y: height - bottom + 16, "text-anchor": "middle" }, shortNumber(x));
  }
  add("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, xLabel);
  if (marked !== null) {
    add("line", { class: "mark", x1: atX(marked), x2: atX(marked), y1: top, y2: height - bottom });
  }
  lines.forEach((line, at) => {
    const path = points[at].map(([x, y]) => `${atX(x).toFixed(1)},${atY(y).toFixed(1)}`).join(" ");
    const dash = line.dashed ? { "stroke-dasharray": "5 3" } : {};
    const polyline = svgElement("polyline",
      { points: path, fill: "none", stroke: line.colour, "stroke-width": 1.8, ...dash });
    polyline.append(svgElement("title", {}, line.name));
    svg.append(polyline);
  });
  const ends = points.map((line, at) => line.length ? `${lines[at].name} ends at ${line.at(-1)[1].toPrecision(3)}` : "");
  svg.setAttribute("aria-label", `${title} against ${xLabel}: ${ends.filter(Boolean).join("; ")}`);
  place.replaceChildren(svg);
}

// One colour per name, the same in all charts of the page; the truth is neutral.
function palette(colours) {
  const names = [];
  return (name) => {
    if (name === "truth") return { colour: "var(--soft)", dashed: false };
    if (!names.includes(name)) names.push(name);
    const at = names.indexOf(name);
    // The last colour of the palette is black, which a dark page swallows.
    const colour = colours[at % (colours.length - 1)];
    return { colour, dashed: Math.floor(at / (colours.length - 1)) % 2 === 1 };
  };
}

function legend(entries) {
  const element = document.createElement("p");
  element.className = "legend";
  for (const { name, colour, dashed } of entries) {
    const entry = document.createElement("span");
    entry.style.setProperty("--colour", colour);
    if (dashed) entry.style.setProperty("--dash", "dashed");
    entry.textContent = name;
    element.append(entry);
  }
  return element;
}
