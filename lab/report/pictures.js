// Pictures as stored, and painted: levels of 16 bits, seen through a table of colours and a table of places.

const LEVELS = 65535;

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

// The colour of every level as a pixel, for a share (0 to 1) of the colours that a value has; null is left blank.
function colourTable(colours, share) {
  const pixels = new Uint32Array(LEVELS + 1), bytes = new Uint8Array(pixels.buffer);
  for (let level = 0; level <= LEVELS; level++) {
    const part = share(level);
    if (part === null) continue;
    const [red, green, blue] = colours[Math.max(0, Math.min(255, Math.round(255 * part)))];
    bytes.set([red, green, blue, 255], 4 * level);
  }
  return pixels;
}

// Which stored pixel each point of a canvas shows, after zooming; -1 outside of a map.
function places({ shape: [, lines, columns], latitudes }, { scale, x, y }) {
  const onMap = latitudes.length > 0;
  const width = onMap ? Math.max(columns, 512) : columns, height = onMap ? width / 2 : lines;
  const table = new Int32Array(width * height);
  const across = (at) => x + ((at + 0.5) / width - 0.5) / scale, down = (at) => y + ((at + 0.5) / height - 0.5) / scale;
  const inside = (share, size) => Math.max(0, Math.min(size - 1, Math.floor(share * size)));
  for (let at = 0, line = 0; line < height; line++) {
    const v = down(line), row = onMap ? mollweideRow(v, latitudes) : inside(v, lines);
    for (let column = 0; column < width; column++, at++) {
      const u = onMap ? mollweideColumn(across(column), v) : across(column);
      table[at] = u < 0 || u >= 1 ? (onMap ? -1 : row * columns + inside(u, columns)) : row * columns + inside(u, columns);
    }
  }
  return { width, height, table };
}

// Mollweide's map, which keeps areas, on the unit square: sin(latitude) = (2 t + sin 2 t) / pi where 1 - 2 v = sin t.
function mollweideRow(v, latitudes) {
  const t = Math.asin(Math.max(-1, Math.min(1, 1 - 2 * v)));
  const latitude = Math.asin(Math.max(-1, Math.min(1, (2 * t + Math.sin(2 * t)) / Math.PI))) * 180 / Math.PI;
  let nearest = 0;
  latitudes.forEach((each, at) => {
    if (Math.abs(each - latitude) < Math.abs(latitudes[nearest] - latitude)) nearest = at;
  });
  return nearest;
}

// The longitude as a share of the whole circle, 0 to 1 from the left edge; outside of that, beside the map.
const mollweideColumn = (u, v) => (u - 0.5) / (Math.sqrt(Math.max(0, 1 - (1 - 2 * v) ** 2)) || 1e-9) + 0.5;

// Where a place of the sphere lies on the unit square; both in degrees, longitudes from -180.
function mollweide(longitude, latitude) {
  const wanted = Math.PI * Math.sin(latitude * Math.PI / 180);
  let t = latitude * Math.PI / 180;
  for (let step = 0; step < 30 && Math.abs(latitude) < 90; step++) {
    t -= (2 * t + Math.sin(2 * t) - wanted) / (2 + 2 * Math.cos(2 * t));
  }
  return [0.5 + longitude / 360 * Math.cos(t), (1 - Math.sin(t)) / 2];
}

function paint(canvas, { width, height, table }, colourAt) {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let at = 0; at < table.length; at++) pixels[at] = table[at] < 0 ? 0 : colourAt(table[at]);
  context.putImageData(image, 0, 0);
}

// Circles of latitude and meridians every 30 degrees, and the edge of the map.
function graticule(canvas, { scale, x, y }) {
  const context = canvas.getContext("2d");
  context.strokeStyle = "rgba(90, 90, 90, 0.45)";
  const line = (points) => {
    context.beginPath();
    for (const [u, v] of points) {
      context.lineTo(((u - x) * scale + 0.5) * canvas.width, ((v - y) * scale + 0.5) * canvas.height);
    }
    context.stroke();
  };
  const steps = (from, to) => Array.from({ length: 61 }, (_, at) => from + (to - from) * at / 60);
  for (let latitude = -60; latitude <= 60; latitude += 30) line(steps(-180, 180).map((each) => mollweide(each, latitude)));
  for (let longitude = -180; longitude <= 180; longitude += 30) line(steps(-90, 90).map((each) => mollweide(longitude, each)));
}
