// The tools above and beside the pictures: orders, frames, choices of picture, layers and map; keys.

const KEYS = [
  ["← →", "previous, next frame, in the order of the timeline"],
  ["Shift + ← →", "ten frames"],
  ["Home, End", "first, last frame"],
  ["Space", "play, stop"],
  ["o", "display order, coding order"],
  ["+ −, wheel", "zoom; drag to move"],
  ["0, double click", "the whole picture"],
  ["1 … 5", "maps; their keys stand at the left"],
  ["g l p t m v w k d", "layers; their keys stand at the left"],
  ["Esc", "the panel follows the pointer again"],
];

function makeTop(app) {
  for (const stream of STREAMS) {
    const mark = swatch(STREAM_COLOURS[stream.number]);
    const seconds = stream.frames.length / stream.fps,
      bits = sum(stream.frames.map((frame) => frame.bits));
    const facts = `${stream.width}x${stream.height}, ${decimals(stream.fps, 3).replace(/\.?0+$/, "")} fps, ${stream.frames.length} frames, ${decimals(bits / seconds / 1000, 1)} kbit/s`;
    byId("names").append(
      element(
        "span",
        { className: "name", title: `${stream.name}: ${facts}` },
        ...(STREAMS.length > 1 ? [mark] : []),
        element("b", { textContent: stream.name }),
        element("span", { textContent: facts }),
      ),
    );
  }
  byId("count").textContent = `of ${app.timeline.count}`;
  byId("number").max = String(app.timeline.count - 1);
  byId("number").addEventListener("change", (event) => app.go(Number(event.target.value)));
  byId("previous").addEventListener("click", () => app.step(-1));
  byId("next").addEventListener("click", () => app.step(1));
  byId("play").addEventListener("click", () => app.play());
  for (const button of byId("orders").querySelectorAll("button"))
    button.addEventListener("click", () => app.setOrder(button.dataset.order));
  const help = byId("help");
  help.append(
    element("h2", { textContent: "Keys" }),
    table(KEYS),
    element("p", { className: "soft", textContent: `h264lite ${META.version}` }),
  );
  help.addEventListener("click", () => help.close());
  byId("help-button").addEventListener("click", () => help.showModal());
}

function makeTools(app) {
  const tools = byId("tools"),
    choice = (type, name, value, row, act) => {
      const input = element("input", { type: type, name, value });
      const label = element("label", {}, input, row.name);
      if (row.key) label.append(element("kbd", { textContent: row.key }));
      input.addEventListener("change", () => {
        act(input);
        input.blur();
      });
      return label;
    };
  tools.append(element("h2", { textContent: "picture" }));
  for (const [value, row] of Object.entries(PICTURES)) {
    if (app.has(row) && (!row.two || STREAMS.length > 1))
      tools.append(choice("radio", "picture", value, row, () => app.setPicture(value)));
  }
  tools.append(element("h2", { textContent: "layers" }));
  for (const [value, row] of Object.entries(LAYERS)) {
    if (app.has(row)) tools.append(choice("checkbox", "layer", value, row, () => app.toggle(value)));
  }
  tools.append(element("h2", { textContent: "map" }));
  for (const [value, row] of Object.entries(MAPS)) {
    if (!app.has(row)) continue;
    const label = choice("radio", "map", value, row, () => app.setMap(value));
    if (value === "bits") label.insertBefore(kindChoice(app), label.lastChild);
    tools.append(label);
  }
  if (STREAMS.length > 1)
    tools.append(
      choice("checkbox", "difference", "difference", { name: "in B: difference to A", key: "x" }, () => app.setDifference()),
    );
  const opacity = element("input", {
    type: "range",
    min: 0,
    max: 100,
    value: 100 * app.state.opacity,
    title: "opacity of the map",
  });
  opacity.addEventListener("change", () => opacity.blur());
  opacity.addEventListener("input", () => {
    app.state.opacity = opacity.value / 100;
    app.redraw();
  });
  tools.append(element("h2", { textContent: "opacity of the map" }), opacity);
  showTools(app);
}

// Which kind of syntax elements the map of bits counts.
function kindChoice(app) {
  const select = element("select", { id: "kind", title: "kind of syntax elements" });
  ["all", ...META.constants.kinds].forEach((name, k) =>
    select.append(element("option", { value: k - 1, textContent: name })),
  );
  select.addEventListener("change", () => {
    BITS.kind = Number(select.value);
    app.setMap("bits");
    select.blur();
  });
  return select;
}

function showTools(app) {
  const { state } = app;
  for (const input of byId("tools").querySelectorAll("input[type=radio], input[type=checkbox]")) {
    input.checked =
      input.name === "layer"
        ? state.layers.has(input.value)
        : input.name === "difference"
          ? state.difference
          : state[input.name] === input.value;
  }
  for (const button of byId("orders").querySelectorAll("button"))
    button.classList.toggle("on", button.dataset.order === state.order);
}

function makeTabs(app) {
  const tabs = { macroblock: "Macroblock", frame: "Frame", totals: "Totals", stream: "Stream" };
  if (STREAMS.length > 1) tabs.compare = "Compare";
  for (const [name, text] of Object.entries(tabs)) {
    const button = element("button", { textContent: text });
    button.dataset.tab = name;
    button.addEventListener("click", () => app.setTab(name));
    byId("tabs").append(button);
  }
}

function onKey(app, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(number|text|range|select-one)$/.test(event.target.type ?? ""))
    return;
  const actions = {
    ArrowLeft: () => app.step(event.shiftKey ? -10 : -1),
    ArrowRight: () => app.step(event.shiftKey ? 10 : 1),
    Home: () => app.step(-Infinity),
    End: () => app.step(Infinity),
    " ": () => app.play(),
    o: () => app.setOrder(app.state.order === "display" ? "coded" : "display"),
    "+": () => app.views[0].zoom(1.25),
    "-": () => app.views[0].zoom(0.8),
    0: () => app.fit(),
    "?": () => byId("help").showModal(),
    Escape: () => app.state.mb >= 0 && app.select(app.state.mb),
    x: () => STREAMS.length > 1 && app.setDifference(),
  };
  for (const [name, row] of Object.entries(LAYERS)) if (app.has(row)) actions[row.key] = () => app.toggle(name);
  for (const [name, row] of Object.entries(MAPS))
    if (row.key && app.has(row)) actions[row.key] = () => app.setMap(app.state.map === name ? "none" : name);
  const act = actions[event.key];
  if (!act || byId("help").open) return;
  event.preventDefault();
  act();
}
