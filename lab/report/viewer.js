// Pictures under one set of controls: what to show, which picture, how bright, how large; errors, curves, flicker.

const GAINS = [1, 2, 5, 10, 20, 50, 100, 200], MILLISECONDS = { play: 250, flicker: 500 };

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
    stack: null, levels: {}, picture: 0, shown: new Set(methods), window: 0.8, level: 0.4, usual: [0.8, 0.4], gain: 2,
    zoom: { scale: 1, x: 0.5, y: 0.5 }, places: null, playing: null, flicker: { timer: null, second: false },
  };
  const isImage = viewer.kind === "image", isMap = viewer.kind === "map";

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
  const reset = element("button", { type: "button", name: "reset" }, "Reset view");
  const panels = element("div", { class: "panels" }), charts = element("div", { class: "charts" });
  const bars = element("div", { class: "bars" }), readout = element("output", { name: "readout", class: "readout" });
  section.append(
    element("h2", {}, viewer.title),
    element("div", { class: "toolbar" },
      element("div", { class: "controls" }, ...Object.entries(choices).map(([key, each]) => labelled(key, each)),
        element("fieldset", {}, element("legend", {}, "methods"), ...boxes)),
      element("div", { class: "controls" }, play, labelled(viewer.along, slider, true), position),
      element("div", { class: "controls" },
        ...(isImage ? [labelled("window", windowing), labelled("level", levelling)] : []),
        labelled("zoom", zoom), labelled("error ×", gain), gainShown, reset,
        element("span", { class: "pair" }, labelled("compare", first), labelled("with", second), flicker))),
    bars, panels, readout, charts,
    element("details", { class: "keys" }, element("summary", {}, "Mouse and keys"), element("p", {},
      (isImage ? "Drag a picture for window and level, with Shift to move it. " : "Drag a picture to move it. ")
      + "Ctrl and the wheel zoom. On a focused picture: arrows move it, + and - zoom, 0 resets, "
      + `comma and full stop step one ${viewer.along} back and on, Space plays and pauses, F flickers.`)),
    ...(viewer.note ? [element("p", { class: "note" }, viewer.note)] : []),
    ...(viewer.thinned ? [element("p", { class: "note" }, viewer.thinned)] : []));

  // ---- values and colours
  const value = (level) => state.stack.range[0] + (state.stack.range[1] - state.stack.range[0]) * level / LEVELS;
  const limit = () => Math.max(Math.abs(state.stack.top), Math.abs(state.stack.bottom)) || 1;
  const shades = {
    field: (v) => (v / limit() + 1) / 2,
    map: (v) => v / limit(),
    image: (v) => (v / limit() - state.level) / state.window + 0.5,
  };
  const isBlank = (level) => isMap && level === 0; // of a quantity, what was not computed
  const pictureColours = () =>
    colourTable(content.maps[viewer.kind], (level) => (isBlank(level) ? null : shades[viewer.kind](value(level))));
  const errorColours = () => {
    const times = GAINS[state.gain] * (state.stack.range[1] - state.stack.range[0]) / LEVELS / limit();
    return colourTable(content.maps.error, (level) => times * level);
  };
  const start = () => state.picture * state.stack.shape[1] * state.stack.shape[2];

  function relativeError(made) {
    const truth = state.levels.truth, from = start(), to = from + state.stack.shape[1] * state.stack.shape[2];
    let wrong = 0, whole = 0;
    for (let at = from; at < to; at++) {
      if (isBlank(truth[at])) continue;
      const right = value(truth[at]);
      wrong += (value(made[at]) - right) ** 2;
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
    figure.append(element("figcaption", {}, element("strong", {}, title), note ? element("span", { class: "note" }, ` ${note}`) : "", " ",
      element("span", { class: "number" })));
    for (const kind of hasError ? ["picture", "error"] : ["picture"]) {
      const canvas = element("canvas", { role: "img", tabindex: "0" });
      const [, lines, columns] = state.stack.shape;
      canvas.style.aspectRatio = state.stack.latitudes.length ? "2 / 1" : `${columns} / ${lines * state.stack.aspect}`;
      handle(canvas);
      figure.append(element("div", { class: kind }, canvas));
    }
    return figure;
  }

  function build() {
    if (!state.stack) return;
    panels.replaceChildren(panel("truth", viewer.truth, false), panel("flicker", "", false),
      ...visible().map((name) => panel(name, name, true)));
    panels.classList.toggle("map", state.stack.latitudes.length > 0);
    panels.style.setProperty("--count", visible().length + 1);
    panels.querySelector("[data-name=flicker]").hidden = flicker.getAttribute("aria-pressed") === "false";
    draw();
  }

  function draw() {
    const where = `${viewer.along} ${label()}`, truth = state.levels.truth, from = start();
    const colours = pictureColours(), ofErrors = errorColours(), onMap = state.stack.latitudes.length > 0;
    state.places ??= places(state.stack, state.zoom);
    slider.setAttribute("aria-valuetext", where);
    position.textContent = `${where} (${state.picture + 1} of ${state.stack.shape[0]})`;
    gainShown.textContent = `${GAINS[state.gain]}`;
    for (const figure of panels.children) {
      let name = figure.dataset.name;
      const canvas = figure.querySelector(".picture canvas");
      if (name === "flicker") {
        if (figure.hidden) continue;
        name = (state.flicker.second ? second : first).value;
        figure.querySelector("strong").textContent = `flicker: ${name}`;
      }
      const levels = state.levels[name];
      paint(canvas, state.places, (at) => colours[levels[from + at]]);
      const error = name === "truth" ? null : relativeError(levels);
      const words = error === null ? "" : `relative error ${error.toPrecision(3)}`;
      figure.querySelector(".number").textContent = words;
      canvas.setAttribute("aria-label", [`${viewer.title}, ${name}, ${where}`, words].filter(Boolean).join(", "));
      const wrong = figure.querySelector(".error canvas");
      if (wrong !== null) {
        paint(wrong, state.places, (at) =>
          (isBlank(truth[from + at]) ? 0 : ofErrors[Math.abs(levels[from + at] - truth[from + at])]));
        wrong.setAttribute("aria-label", `error of ${name} times ${GAINS[state.gain]}, ${where}`);
      }
      if (onMap) figure.querySelectorAll("canvas").forEach((each) => graticule(each, state.zoom));
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
      return element("span", { class: "bar" }, element("b", {}, name), low, canvas, `${high}${unit}`);
    };
    const top = limit(), short = (each) => String(+each.toPrecision(2));
    const low = { field: -top, map: 0, image: top * (state.level - state.window / 2) }[viewer.kind];
    const high = isImage ? top * (state.level + state.window / 2) : top;
    bars.replaceChildren(bar(viewer.kind, short(low), short(high), "value"),
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

  // What every shown method has at the point under the pointer.
  function readAt(canvas, event) {
    const { left, top, width, height } = canvas.getBoundingClientRect(), { table } = state.places;
    const column = Math.floor((event.clientX - left) / width * state.places.width);
    const line = Math.floor((event.clientY - top) / height * state.places.height);
    const at = table[line * state.places.width + column];
    if (at === undefined || at < 0) return;
    const [, , columns] = state.stack.shape;
    const words = ["truth", ...visible()].map((name) => `${name} ${value(state.levels[name][start() + at]).toPrecision(3)}`);
    readout.textContent = `line ${Math.floor(at / columns) + 1}, column ${at % columns + 1}: ${words.join(", ")}`;
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
    Object.assign(state, { stack: found, levels, places: null });
    [found.bottom, found.top] = levels.truth
      .reduce(([a, b], level) => [Math.min(a, level), Math.max(b, level)], [LEVELS, 0]).map(value);
    state.picture = isNew ? found.shape[0] - 1 : Math.min(state.picture, found.shape[0] - 1);
    if (isNew && viewer.kind !== "field") state.picture = Math.floor(found.shape[0] / 2);
    slider.max = found.shape[0] - 1;
    slider.value = state.picture;
    slider.disabled = play.disabled = found.shape[0] === 1;
    const options = ["truth", ...Object.keys(found.made)];
    [first, second].forEach((select, at) => {
      const before = select.value;
      select.replaceChildren(...options.map((name) => element("option", { value: name }, name === "truth" ? viewer.truth : name)));
      select.value = options.includes(before) && before ? before : options[Math.min(at, options.length - 1)];
    });
    if (isNew) {
      chooseGain();
      chooseWindow();
    }
    build();
    section.dataset.ready = "true";
  }

  // The largest error of all fills the colours, about.
  function chooseGain() {
    const from = start(), to = from + state.stack.shape[1] * state.stack.shape[2], { truth } = state.levels;
    let most = 0;
    for (const name of Object.keys(state.stack.made)) {
      for (let at = from; at < to; at++) most = Math.max(most, Math.abs(value(state.levels[name][at]) - value(truth[at])));
    }
    state.gain = Math.max(0, GAINS.filter((each) => each * most <= limit()).length - 1);
    gain.value = state.gain;
  }

  // All but the brightest two hundredth of an image is within the window.
  function chooseWindow() {
    const counts = new Uint32Array(LEVELS + 1), { truth } = state.levels;
    for (const level of truth) counts[level]++;
    let top = LEVELS;
    for (let above = 0; top > 0 && above + counts[top] < truth.length / 200; top--) above += counts[top];
    const window = Math.max(0.05, Math.min(1, 1.05 * value(top) / limit()));
    Object.assign(state, { window, level: window / 2, usual: [window, window / 2] });
    windowing.value = state.window;
    levelling.value = state.level;
  }

  function show(picture) {
    const count = state.stack.shape[0];
    state.picture = (picture + count) % count;
    slider.value = state.picture;
    draw();
  }

  function switchPlay() {
    const stops = state.playing !== null;
    if (stops) clearInterval(state.playing);
    state.playing = stops ? null : setInterval(() => show(state.picture + 1), MILLISECONDS.play);
    play.textContent = stops ? "Play" : "Pause";
  }

  function switchFlicker() {
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
  }

  function zoomTo(scale, x = state.zoom.x, y = state.zoom.y) {
    scale = Math.max(1, Math.min(8, scale));
    const inside = (middle) => Math.max(0.5 / scale, Math.min(1 - 0.5 / scale, middle));
    Object.assign(state, { zoom: { scale, x: inside(x), y: inside(y) }, places: null });
    zoom.value = scale;
    draw();
  }

  function setWindow(window, level) {
    state.window = Math.max(0.02, Math.min(1.5, window));
    state.level = Math.max(0, Math.min(1, level));
    windowing.value = state.window;
    levelling.value = state.level;
    draw();
  }

  slider.addEventListener("input", () => show(Number(slider.value)));
  play.addEventListener("click", switchPlay);
  gain.addEventListener("input", () => { state.gain = Number(gain.value); draw(); });
  windowing.addEventListener("input", () => setWindow(Number(windowing.value), state.level));
  levelling.addEventListener("input", () => setWindow(state.window, Number(levelling.value)));
  zoom.addEventListener("input", () => zoomTo(Number(zoom.value)));
  reset.addEventListener("click", () => { setWindow(...state.usual); zoomTo(1, 0.5, 0.5); });
  for (const select of [first, second]) select.addEventListener("change", () => draw());
  flicker.addEventListener("click", switchFlicker);

  function handle(canvas) {
    let last = null;
    canvas.addEventListener("pointerdown", (event) => {
      last = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { last = null; });
    canvas.addEventListener("pointermove", (event) => {
      if (last === null) return readAt(canvas, event);
      const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]], { scale, x, y } = state.zoom;
      last = [event.clientX, event.clientY];
      if (isImage && !event.shiftKey) return setWindow(state.window + dx / 200, state.level + dy / 200);
      zoomTo(scale, x - dx / canvas.clientWidth / scale, y - dy / canvas.clientHeight / scale);
    });
    canvas.addEventListener("wheel", (event) => { // without Ctrl the wheel scrolls the page, as everywhere
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoomTo(state.zoom.scale * (event.deltaY < 0 ? 1.25 : 0.8));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const { scale, x, y } = state.zoom, step = 0.1 / scale, { picture } = state;
      const does = {
        ArrowLeft: () => zoomTo(scale, x - step, y), ArrowRight: () => zoomTo(scale, x + step, y),
        ArrowUp: () => zoomTo(scale, x, y - step), ArrowDown: () => zoomTo(scale, x, y + step),
        "+": () => zoomTo(scale * 1.25), "-": () => zoomTo(scale * 0.8), "0": () => zoomTo(1, 0.5, 0.5),
        ",": () => show(picture - 1), ".": () => show(picture + 1), " ": switchPlay, f: switchFlicker,
      };
      if (!(event.key in does) || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      does[event.key]();
    });
  }

  choose(Object.keys(choices)[0]);
}
