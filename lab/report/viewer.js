// Pictures under one set of controls: what to show, which picture, how bright, how large; errors, curves, flicker.

const LEVELS = 65535, GAINS = [1, 2, 5, 10, 20, 50, 100, 200], MILLISECONDS = { play: 250, flicker: 500 };

// Differences along each line, low bytes before high ones, compressed: see packed() in viewer.py.
async function unpacked(id, [count, lines, columns]) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (each) => each.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const halves = new Uint8Array(await new Response(stream).arrayBuffer());
  const size = count * lines * columns, levels = new Uint16Array(size);
  for (let start = 0; start < size; start += columns) {
    let level = 0;
    for (let at = start; at < start + columns; at++) {
      level = (level + halves[at] + 256 * halves[size + at]) & LEVELS;
      levels[at] = level;
    }
  }
  return levels;
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in made && typeof value !== "string") made[key] = value; else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function labelled(text, control, wide = false) {
  return element("label", wide ? { class: "wide" } : {}, text, control);
}

const range = (name, min, max, value, step = 1) =>
  element("input", { type: "range", name, min: String(min), max: String(max), step: String(step), value: String(value) });

function setUpViewer(section, viewer, number) {
  const methods = [...new Set(viewer.stacks.flatMap((stack) => Object.keys(stack.made)))];
  const state = {
    stack: null, levels: {}, picture: 0, shown: new Set(methods), window: 0.8, level: 0.4, gain: 2,
    zoom: { scale: 1, x: 0.5, y: 0.5 }, playing: null, flicker: { timer: null, second: false },
  };
  const isImage = viewer.kind === "image";

  // ---- controls
  const choices = {};
  for (const key of Object.keys(viewer.stacks[0].choice)) {
    const values = [...new Set(viewer.stacks.map((stack) => stack.choice[key]))];
    const select = element("select", { name: key }, ...values.map((value) => element("option", { value }, value)));
    select.addEventListener("change", () => choose(key));
    choices[key] = select;
  }
  const boxes = methods.map((name) => {
    const box = element("input", { type: "checkbox", name: "method", value: name, checked: true });
    box.addEventListener("change", () => {
      if (box.checked) state.shown.add(name); else state.shown.delete(name);
      build();
    });
    return element("label", {}, box, name);
  });
  const slider = range("picture", 0, 0, 0), position = element("output", { name: "position" });
  const play = element("button", { type: "button", name: "play" }, "Play");
  const gain = range("gain", 0, GAINS.length - 1, 2), gainShown = element("output");
  const zoom = range("zoom", 1, 8, 1, 0.25);
  const windowing = range("window", 0.02, 1.5, 0.8, 0.01), levelling = range("level", 0, 1, 0.4, 0.01);
  const [first, second] = ["first", "second"].map((name) => element("select", { name }));
  const flicker = element("button", { type: "button", name: "flicker", "aria-pressed": "false" }, "Flicker");
  const panels = element("div", { class: "panels" }), charts = element("div", { class: "charts" });
  const bars = element("div", { class: "controls" }), keys = element("p");
  const rows = [
    element("h2", {}, viewer.title),
    element("div", { class: "controls" }, ...Object.entries(choices).map(([key, each]) => labelled(key, each))),
    element("div", { class: "controls" }, element("fieldset", {}, element("legend", {}, "methods"), ...boxes)),
    element("div", { class: "controls" }, play, labelled(viewer.along, slider, true), position),
    element("div", { class: "controls" },
      ...(isImage ? [labelled("window", windowing), labelled("level", levelling)] : []),
      labelled("zoom", zoom), labelled("error times", gain), gainShown),
    element("div", { class: "controls" }, labelled("compare", first), labelled("with", second), flicker),
    bars, panels, charts, keys,
  ];
  keys.textContent = (isImage ? "Drag a picture for window and level, with Shift to move it; " : "Drag a picture to move it; ")
    + "the wheel zooms. On a focused picture: arrows move, + and - zoom, 0 resets."
    + (viewer.thinned ? ` ${viewer.thinned}` : "");
  section.append(...rows);

  // ---- values and colours
  const value = (levels, at) => {
    const [low, high] = state.stack.range;
    return low + (high - low) * levels[at] / LEVELS;
  };
  const limit = () => Math.max(Math.abs(state.stack.top), Math.abs(state.stack.bottom)) || 1;
  const shades = {
    field: (v) => (v / limit() + 1) / 2,
    map: (v) => v / limit(),
    image: (v) => (v / limit() - state.level) / state.window + 0.5,
  };
  const colour = (map, share) => content.maps[map][Math.max(0, Math.min(255, Math.round(255 * share)))];

  // The pixel that each point of a canvas shows, after zooming.
  function source(line, column) {
    const [, lines, columns] = state.stack.shape, { scale, x, y } = state.zoom;
    const inside = (at, middle, size) =>
      Math.max(0, Math.min(size - 1, Math.floor((middle + (at + 0.5 - size / 2) / size / scale) * size)));
    return inside(line, y, lines) * columns + inside(column, x, columns);
  }

  function paint(canvas, map, share) {
    const [, lines, columns] = state.stack.shape;
    canvas.width = columns;
    canvas.height = lines;
    canvas.style.aspectRatio = `${columns} / ${lines * state.stack.aspect}`;
    const context = canvas.getContext("2d"), image = context.createImageData(columns, lines);
    for (let at = 0, line = 0; line < lines; line++) {
      for (let column = 0; column < columns; column++, at++) {
        const [red, green, blue] = colour(map, share(source(line, column)));
        image.data.set([red, green, blue, 255], 4 * at);
      }
    }
    context.putImageData(image, 0, 0);
  }

  function relativeError(made) {
    const [, lines, columns] = state.stack.shape, truth = state.levels.truth;
    let wrong = 0, whole = 0;
    for (let at = state.picture * lines * columns, end = at + lines * columns; at < end; at++) {
      const right = value(truth, at);
      wrong += (value(made, at) - right) ** 2;
      whole += right ** 2;
    }
    return Math.sqrt(wrong / (whole || 1));
  }

  // ---- drawing
  const visible = () => Object.keys(state.stack.made).filter((name) => state.shown.has(name));
  const label = () => viewer.labels[state.picture] ?? String(state.picture + 1);

  function panel(name, title, hasError) {
    const figure = element("figure", { "data-name": name });
    const note = state.stack.notes[name];
    const number = element("span", { class: "number" });
    figure.append(element("figcaption", {}, title, note ? element("span", { class: "note" }, ` ${note}`) : "", " ", number));
    for (const kind of hasError ? ["picture", "error"] : ["picture"]) {
      const canvas = element("canvas", { role: "img", tabindex: "0" });
      handle(canvas);
      figure.append(element("div", { class: kind }, canvas));
    }
    return figure;
  }

  function build() {
    if (!state.stack) return;
    panels.replaceChildren(panel("truth", "truth", false), panel("flicker", "", false),
      ...visible().map((name) => panel(name, name, true)));
    panels.querySelector("[data-name=flicker]").hidden = true;
    draw();
  }

  function draw() {
    const [, lines, columns] = state.stack.shape, start = state.picture * lines * columns;
    const where = `${viewer.along} ${label()}`, truth = state.levels.truth;
    slider.setAttribute("aria-valuetext", where);
    position.textContent = `${where} (${state.picture + 1} of ${state.stack.shape[0]})`;
    gainShown.textContent = `${GAINS[state.gain]}`;
    const picture = (levels) => (at) => shades[viewer.kind](value(levels, start + at));
    for (const figure of panels.children) {
      let name = figure.dataset.name;
      const canvas = figure.querySelector(".picture canvas");
      if (name === "flicker") {
        if (figure.hidden) continue;
        name = (state.flicker.second ? second : first).value;
        figure.querySelector("figcaption").firstChild.textContent = `flicker: ${name}`;
      }
      const levels = state.levels[name];
      paint(canvas, viewer.kind, picture(levels));
      const error = name === "truth" ? null : relativeError(levels);
      const words = error === null ? "" : `relative error ${error.toPrecision(3)}`;
      figure.querySelector(".number").textContent = words;
      canvas.setAttribute("aria-label", [`${viewer.title}, ${name}, ${where}`, words].filter(Boolean).join(", "));
      const wrong = figure.querySelector(".error canvas");
      if (wrong === null) continue;
      const times = GAINS[state.gain] / limit();
      paint(wrong, "error", (at) => times * Math.abs(value(levels, start + at) - value(truth, start + at)));
      wrong.setAttribute("aria-label", `error of ${name} times ${GAINS[state.gain]}, ${where}`);
    }
    drawBars();
    drawCharts();
  }

  function drawBars() {
    const unit = state.stack.unit ? ` ${state.stack.unit}` : "";
    const bar = (map, low, high, name) => {
      const canvas = element("canvas", { width: 256, height: 1, role: "img", "aria-label": `colours of ${name}, from ${low} to ${high}${unit}` });
      const context = canvas.getContext("2d"), image = context.createImageData(256, 1);
      for (let at = 0; at < 256; at++) image.data.set([...content.maps[map][at], 255], 4 * at);
      context.putImageData(image, 0, 0);
      return element("span", { class: "bar" }, `${name} ${low}`, canvas, `${high}${unit}`);
    };
    const top = limit(), short = (each) => each.toPrecision(2);
    const low = { field: -top, map: 0, image: top * (state.level - state.window / 2) }[viewer.kind];
    const high = isImage ? top * (state.level + state.window / 2) : top;
    bars.replaceChildren(bar(viewer.kind, short(low), short(high), "colours"),
      bar("error", "0", short(top / GAINS[state.gain]), "error"));
  }

  function drawCharts() {
    const names = visible();
    charts.replaceChildren();
    for (const curves of state.stack.curves) {
      const place = element("div");
      charts.append(place);
      const lines = Object.entries(curves.lines).filter(([name]) => name === "truth" || names.includes(name))
        .map(([name, y]) => ({ name, x: curves.x, y: Array.isArray(y[0]) ? y[state.picture] : y, ...lineStyle(name) }));
      drawChart(place, { ...curves, lines, marked: curves.marksPicture ? curves.x[state.picture] : null });
      place.append(legend(lines));
    }
  }

  // ---- what the controls do
  async function choose(key) {
    const fits = (stack, wanted) => Object.entries(wanted).every(([name, select]) => stack.choice[name] === select.value);
    const found = viewer.stacks.find((stack) => fits(stack, choices))
      ?? viewer.stacks.find((stack) => fits(stack, { [key]: choices[key] }));
    for (const [name, select] of Object.entries(choices)) select.value = found.choice[name];
    const levels = { truth: await unpacked(`picture-${number}-${found.truth}`, found.shape) };
    for (const [name, at] of Object.entries(found.made)) {
      levels[name] = await unpacked(`picture-${number}-${at}`, found.shape);
    }
    const isNew = state.stack === null;
    Object.assign(state, { stack: found, levels });
    const [low, high] = found.range;
    const ends = levels.truth.reduce(([a, b], level) => [Math.min(a, level), Math.max(b, level)], [LEVELS, 0]);
    [found.bottom, found.top] = ends.map((level) => low + (high - low) * level / LEVELS);
    state.picture = isNew ? found.shape[0] - 1 : Math.min(state.picture, found.shape[0] - 1);
    if (isNew && isImage) state.picture = Math.floor(found.shape[0] / 2);
    slider.max = found.shape[0] - 1;
    slider.value = state.picture;
    slider.disabled = play.disabled = found.shape[0] === 1;
    const options = ["truth", ...Object.keys(found.made)];
    [first, second].forEach((select, at) => {
      const before = select.value;
      select.replaceChildren(...options.map((name) => element("option", { value: name }, name)));
      select.value = options.includes(before) && before ? before : options[Math.min(at, options.length - 1)];
    });
    if (isNew) chooseGain();
    build();
    section.dataset.ready = "true";
  }

  // The largest error of all fills the colours, about.
  function chooseGain() {
    const [, lines, columns] = state.stack.shape, start = state.picture * lines * columns;
    let most = 0;
    for (const name of Object.keys(state.stack.made)) {
      for (let at = start; at < start + lines * columns; at++) {
        most = Math.max(most, Math.abs(value(state.levels[name], at) - value(state.levels.truth, at)));
      }
    }
    const wanted = GAINS.filter((each) => each * most <= limit()).length - 1;
    state.gain = Math.max(0, wanted);
    gain.value = state.gain;
  }

  function show(picture) {
    const count = state.stack.shape[0];
    state.picture = (picture + count) % count;
    slider.value = state.picture;
    draw();
  }

  slider.addEventListener("input", () => show(Number(slider.value)));
  play.addEventListener("click", () => {
    const stops = state.playing !== null;
    if (stops) clearInterval(state.playing);
    state.playing = stops ? null : setInterval(() => show(state.picture + 1), MILLISECONDS.play);
    play.textContent = stops ? "Play" : "Pause";
  });
  gain.addEventListener("input", () => { state.gain = Number(gain.value); draw(); });
  windowing.addEventListener("input", () => { state.window = Number(windowing.value); draw(); });
  levelling.addEventListener("input", () => { state.level = Number(levelling.value); draw(); });
  zoom.addEventListener("input", () => zoomTo(Number(zoom.value)));
  for (const select of [first, second]) select.addEventListener("change", () => draw());
  flicker.addEventListener("click", () => {
    const figure = panels.querySelector("[data-name=flicker]"), { timer } = state.flicker;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still && !figure.hidden && !state.flicker.second) { // nothing moves by itself: each press shows the other
      state.flicker.second = true;
      return draw();
    }
    clearInterval(timer);
    const stops = !figure.hidden;
    figure.hidden = stops;
    flicker.setAttribute("aria-pressed", String(!stops));
    state.flicker = { second: false, timer: stops || still ? null : setInterval(() => {
      state.flicker.second = !state.flicker.second;
      draw();
    }, MILLISECONDS.flicker) };
    draw();
  });

  function zoomTo(scale, x = state.zoom.x, y = state.zoom.y) {
    scale = Math.max(1, Math.min(8, scale));
    const inside = (middle) => Math.max(0.5 / scale, Math.min(1 - 0.5 / scale, middle));
    state.zoom = { scale, x: inside(x), y: inside(y) };
    zoom.value = scale;
    draw();
  }

  function handle(canvas) {
    let last = null;
    canvas.addEventListener("pointerdown", (event) => {
      last = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => { last = null; });
    canvas.addEventListener("pointermove", (event) => {
      if (last === null) return;
      const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
      last = [event.clientX, event.clientY];
      const { scale, x, y } = state.zoom;
      if (!isImage || event.shiftKey) return zoomTo(scale, x - dx / canvas.clientWidth / scale, y - dy / canvas.clientHeight / scale);
      state.window = Math.max(0.02, Math.min(1.5, state.window + dx / 200));
      state.level = Math.max(0, Math.min(1, state.level + dy / 200));
      windowing.value = state.window;
      levelling.value = state.level;
      draw();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoomTo(state.zoom.scale * (event.deltaY < 0 ? 1.25 : 0.8));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const { scale, x, y } = state.zoom, step = 0.1 / scale;
      const moves = {
        ArrowLeft: [scale, x - step, y], ArrowRight: [scale, x + step, y], ArrowUp: [scale, x, y - step],
        ArrowDown: [scale, x, y + step], "+": [scale * 1.25, x, y], "-": [scale * 0.8, x, y], "0": [1, 0.5, 0.5],
      };
      if (!(event.key in moves)) return;
      event.preventDefault();
      zoomTo(...moves[event.key]);
    });
  }

  choose(Object.keys(choices)[0]);
}
