// Small charts as SVG, and elements of the document; all text is set as text.

function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

// A small square of a colour, for keys and legends.
function swatch(colour) {
  const square = element("i", { className: "swatch" });
  square.style.background = colour;
  return square;
}

function svg(name, attributes = {}, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== "") node.textContent = text;
  return node;
}

function chart(height, width = 312) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
}

// Rows of [name, value ...] as a table; with `head` the values are numbers to the right.
function table(rows, head = null) {
  const node = element("table", { className: head ? "numbers" : "" });
  if (head) node.append(element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { textContent: text })))));
  for (const [name, ...values] of rows) {
    node.append(
      element(
        "tr",
        {},
        element("th", { textContent: name }),
        ...values.map((value) => element("td", { textContent: value })),
      ),
    );
  }
  return node;
}

// Parts of a whole as one horizontal bar with a key: [name, value, colour].
function shares(rows, unit) {
  const total = rows.reduce((sum, [, value]) => sum + value, 0) || 1,
    box = element("div", { className: "chart" }),
    bar = chart(14);
  let at = 0;
  const key = element("div", { className: "keys" });
  for (const [name, value, colour] of rows) {
    if (!value) continue;
    const rect = svg("rect", { x: at, y: 0, width: Math.max(0.5, (value / total) * 312 - 0.5), height: 14, fill: colour });
    rect.append(svg("title", {}, `${name}: ${value.toLocaleString("en")} ${unit}, ${((100 * value) / total).toFixed(1)} %`));
    bar.append(rect);
    at += (value / total) * 312;
    const mark = swatch(colour);
    key.append(element("span", {}, mark, `${name} ${((100 * value) / total).toFixed(1)} %`));
  }
  box.append(bar, key);
  return box;
}

// A histogram: one stacked bar for each place. series: [{values, colour, name}]; labels: of places, sparse.
function histogram(series, labels, title, first = 0) {
  const count = series[0].values.length,
    height = 92,
    box = element("div", { className: "chart" }),
    drawing = chart(height);
  const sums = Array.from({ length: count }, (_, k) => series.reduce((sum, { values }) => sum + values[k], 0));
  const most = Math.max(...sums, 1),
    total = sums.reduce((a, b) => a + b, 0) || 1,
    step = 312 / count;
  for (let k = 0; k < count; k++) {
    let y = height - 14;
    for (const { values, colour, name } of series) {
      const size = (values[k] / most) * (height - 26);
      if (!size) continue;
      y -= size;
      const bar = svg("rect", { x: k * step, y, width: Math.max(0.6, step - 1), height: Math.max(0.4, size), fill: colour });
      bar.append(
        svg(
          "title",
          {},
          `${title} ${labels(k + first, true)}${name ? `, ${name}` : ""}: ${values[k].toLocaleString("en")}, ${((100 * values[k]) / total).toFixed(2)} %`,
        ),
      );
      drawing.append(bar);
    }
    const label = labels(k + first, false);
    if (label) drawing.append(svg("text", { x: (k + 0.5) * step, y: height - 3, "text-anchor": "middle" }, label));
  }
  drawing.append(svg("line", { x1: 0, x2: 312, y1: height - 13.5, y2: height - 13.5, stroke: "#454b53" }));
  box.append(drawing);
  return box;
}

// Points of rate and quality: [{name, colour, points: [[x, y]], mean: [x, y]}].
function scatter(series, xLabel, yLabel) {
  const height = 210,
    left = 40,
    bottom = 28,
    drawing = chart(height),
    box = element("div", { className: "chart" });
  const all = series.flatMap(({ points, mean }) => [...points, mean]),
    xs = all.map((p) => p[0]),
    ys = all.map((p) => p[1]);
  const xTicks = ticks(xs),
    yTicks = ticks(ys),
    [x0, x1] = [xTicks[0], xTicks[xTicks.length - 1]],
    [y0, y1] = [yTicks[0], yTicks[yTicks.length - 1]];
  const x = (v) => left + ((v - x0) / (x1 - x0)) * (312 - left - 6),
    y = (v) => height - bottom - ((v - y0) / (y1 - y0)) * (height - bottom - 10);
  const text = (value) => String(Number(value.toPrecision(6)));
  for (const value of yTicks) {
    drawing.append(
      svg("line", { x1: left, x2: 306, y1: y(value), y2: y(value), stroke: "#2b3036" }),
      svg("text", { x: left - 5, y: y(value) + 3, "text-anchor": "end" }, text(value)),
    );
  }
  for (const value of xTicks)
    drawing.append(svg("text", { x: x(value), y: height - 14, "text-anchor": "middle" }, text(value)));
  for (const { name, colour, points, mean } of series) {
    for (const [px, py] of points)
      drawing.append(svg("circle", { cx: x(px), cy: y(py), r: 1.7, fill: colour, "fill-opacity": 0.45 }));
    const dot = svg("circle", { cx: x(mean[0]), cy: y(mean[1]), r: 5, fill: colour, stroke: "#fff", "stroke-width": 1.2 });
    dot.append(svg("title", {}, `${name}: ${mean[0].toFixed(2)}, ${mean[1].toFixed(3)}`));
    drawing.append(dot);
  }
  drawing.append(
    svg("text", { x: (left + 306) / 2, y: height - 1, "text-anchor": "middle" }, xLabel),
    svg("text", { x: -(height - bottom) / 2, y: 8, "text-anchor": "middle", transform: "rotate(-90)" }, yLabel),
  );
  box.append(drawing);
  return box;
}

// Round numbers, 3 to 7 of them, from below the least value to above the largest.
function ticks(values) {
  const least = Math.min(...values),
    most = Math.max(...values),
    wanted = (most - least || Math.abs(most) || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(wanted)),
    step = [1, 2, 5, 10].find((k) => k * power >= wanted) * power,
    ticks = [];
  for (let k = Math.floor(least / step); k <= Math.ceil(most / step); k++) ticks.push(k * step);
  return ticks.length > 1 ? ticks : [ticks[0], ticks[0] + step];
}
