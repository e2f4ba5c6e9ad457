// The page: its state, what the tools, keys and panels do with it, and `window.report` for tests and the console.

const KEYS = [
  ["← →", "previous, next frame, in the order of the timeline"], ["Shift + ← →", "ten frames"], ["Home, End", "first, last frame"],
  ["Space", "play, stop"], ["o", "display order, coding order"], ["+ −, wheel", "zoom; drag to move"], ["0, double click", "the whole picture"],
  ["0 … 9 beside the maps", "colour macroblocks by a value"], ["g l p t m v w k d", "layers, as the list at the left says"], ["Esc", "no macroblock is kept"],
];

class App {
  constructor() {
    this.state = { n: 0, order: "display", map: "none", opacity: .55, picture: "decoded", layers: new Set(["partitions"]), mb: -1, tab: "frame",
      difference: false };
    this.hovered = -1;
    this.ranges = new Map();
    for (const stream of STREAMS) {
      stream.inCodingOrder.forEach((n, place) => { stream.frames[n].place = place; });
      stream.videos = {
        decoded: new Pictures({ prefix: `${stream.key}u`, codec: stream.codec, access: stream.access,
          coded: n => stream.frames[n].coded, display: coded => stream.byCoded[coded] }),
      };
      for (const name of ["source", "prediction"]) {
        if (stream[name]) stream.videos[name] = new Pictures({ ...stream[name], coded: n => n, display: n => n });
      }
    }
    this.views = STREAMS.map(stream => new View(stream, this));
    byId("views").append(...this.views.map(view => view.root));
    this.timeline = new Timeline(this, byId("time"), byId("time-tip"));
    this.makeTop();
    this.makeTools();
    this.makeTabs();
    window.addEventListener("resize", () => this.resize());
    document.addEventListener("keydown", event => this.key(event));
  }

  makeTop() {
    for (const stream of STREAMS) {
      const swatch = element("i", { className: "swatch" });
      swatch.style.background = STREAM_COLOURS[stream.number];
      const seconds = stream.frames.length / stream.fps, bits = sum(stream.frames.map(frame => frame.bits));
      const facts = `${stream.width}x${stream.height}, ${decimals(stream.fps, 3).replace(/\.?0+$/, "")} fps, ${stream.frames.length} frames, ${decimals(bits / seconds / 1000, 1)} kbit/s`;
      byId("names").append(element("span", { className: "name", title: `${stream.name}: ${facts}` }, ...(STREAMS.length > 1 ? [swatch] : []),
        element("b", { textContent: stream.name }), element("span", { textContent: facts })));
    }
    byId("count").textContent = `of ${this.timeline.count}`;
    byId("number").max = String(this.timeline.count - 1);
    byId("number").addEventListener("change", event => this.go(Number(event.target.value)));
    byId("previous").addEventListener("click", () => this.step(-1));
    byId("next").addEventListener("click", () => this.step(1));
    byId("play").addEventListener("click", () => this.play());
    for (const button of byId("orders").querySelectorAll("button")) button.addEventListener("click", () => this.setOrder(button.dataset.order));
    const help = byId("help");
    help.append(element("h2", { textContent: "Keys" }), table(KEYS), element("p", { className: "soft", textContent: `h264lite ${META.version}` }));
    help.addEventListener("click", () => help.close());
    byId("help-button").addEventListener("click", () => help.showModal());
  }

  has(row) { return !row.needs || STREAMS.some(stream => stream.has[row.needs]); }

  makeTools() {
    const tools = byId("tools"), choice = (kind, name, value, row, act) => {
      const input = element("input", { type: kind, name, value });
      const label = element("label", {}, input, row.name);
      if (row.key) label.append(element("kbd", { textContent: row.key }));
      input.addEventListener("change", () => { act(input); input.blur(); });
      return label;
    };
    tools.append(element("h2", { textContent: "picture" }));
    for (const [value, row] of Object.entries(PICTURES)) {
      if (this.has(row) && (!row.two || STREAMS.length > 1)) tools.append(choice("radio", "picture", value, row, () => this.setPicture(value)));
    }
    tools.append(element("h2", { textContent: "layers" }));
    for (const [value, row] of Object.entries(LAYERS)) {
      if (this.has(row)) tools.append(choice("checkbox", "layer", value, row, () => this.toggle(value)));
    }
    tools.append(element("h2", { textContent: "map" }));
    for (const [value, row] of Object.entries(MAPS)) {
      if (this.has(row)) tools.append(choice("radio", "map", value, row, () => this.setMap(value)));
    }
    if (STREAMS.length > 1) tools.append(choice("checkbox", "difference", "difference", { name: "B minus A in B", key: "x" }, () => this.setDifference()));
    const opacity = element("input", { type: "range", min: 0, max: 100, value: 100 * this.state.opacity, title: "opacity of the map" });
    opacity.addEventListener("input", () => { this.state.opacity = opacity.value / 100; this.redraw(); });
    tools.append(element("h2", { textContent: "opacity of the map" }), opacity);
    this.showTools();
  }

  showTools() {
    const { state } = this;
    for (const input of byId("tools").querySelectorAll("input[type=radio], input[type=checkbox]")) {
      input.checked = input.name === "layer" ? state.layers.has(input.value) : input.name === "difference" ? state.difference
        : state[input.name] === input.value;
    }
    for (const button of byId("orders").querySelectorAll("button")) button.classList.toggle("on", button.dataset.order === state.order);
  }

  makeTabs() {
    const tabs = { macroblock: "Macroblock", frame: "Frame", totals: "Totals", stream: "Stream" };
    if (STREAMS.length > 1) tabs.compare = "Compare";
    for (const [name, text] of Object.entries(tabs)) {
      const button = element("button", { textContent: text });
      button.dataset.tab = name;
      button.addEventListener("click", () => this.setTab(name));
      byId("tabs").append(button);
    }
  }

  setTab(name) {
    this.state.tab = name;
    for (const button of byId("tabs").children) button.classList.toggle("on", button.dataset.tab === name);
    byId("panel").scrollTop = 0;
    this.showPanel();
  }

  showPanel() {
    const panels = { macroblock: macroblockPanel, frame: framePanel, totals: totalsPanel, stream: streamPanel, compare: comparePanel };
    byId("panel").replaceChildren(...panels[this.state.tab](this));
  }

  // Frames ------------------------------------------------------------------------------------------------------------

  async go(n) {
    const { state } = this;
    if (!Number.isFinite(n)) n = state.n;
    state.n = Math.min(Math.max(0, Math.round(n)), this.timeline.count - 1);
    byId("number").value = String(state.n);
    this.timeline.follow(state.n);
    this.timeline.draw();
    const shown = Promise.all(this.views.map(view => view.show(Math.min(state.n, view.stream.frames.length - 1), state.picture)));
    const all = await shown.catch(error => { this.views[0].note.textContent = error.message; this.views[0].note.hidden = false; return []; });
    if (!all.length || !all.every(Boolean)) return false;
    if (["frame", "macroblock", "compare"].includes(state.tab)) this.showPanel();
    this.redraw();
    return true;
  }

  step(count) {
    const { timeline } = this, place = Math.min(Math.max(0, timeline.placeOf(this.state.n) + count), timeline.count - 1);
    return this.go(timeline.frameAt(place) ?? this.state.n);
  }

  async play() {
    this.playing = !this.playing;
    byId("play").textContent = this.playing ? "stop" : "play";
    let due = performance.now();
    while (this.playing) {
      const before = this.state.n;
      await this.step(1);
      if (this.state.n === before) break;
      due = Math.max(due + 1000 / STREAMS[0].fps, performance.now());
      await new Promise(resolve => setTimeout(resolve, due - performance.now()));
    }
    this.playing = false;
    byId("play").textContent = "play";
  }

  setOrder(order) {
    this.state.order = order;
    this.showTools();
    this.timeline.follow(this.state.n);
    this.timeline.draw();
  }

  setPicture(picture) { this.state.picture = picture; this.showTools(); return this.go(this.state.n); }
  setMap(map) { this.state.map = map; this.showTools(); this.redraw(); }
  setDifference() { this.state.difference = !this.state.difference; this.showTools(); this.redraw(); }
  toggle(layer) {
    const { layers } = this.state;
    if (!layers.delete(layer)) layers.add(layer);
    this.showTools();
    this.redraw();
  }

  // Views -------------------------------------------------------------------------------------------------------------

  redraw() {
    this.rangeKept = null;
    for (const view of this.views) view.draw();
    this.showLegend();
  }

  resize() {
    this.timeline.resize();
    this.timeline.draw();
    for (const view of this.views) view.resize();
    if (PLACE.fitted) this.views[0].fit();
    this.redraw();
  }

  fit() { this.views[0].fit(); this.redraw(); }

  // The arrays of A where B shows the difference to it.
  otherArrays(view) {
    const first = this.views[0];
    return this.state.difference && view.stream.number === 1 && view.arrays.n === first.arrays?.n && this.state.map !== "type" ? first.arrays : null;
  }

  // The scale of the current map: values of both streams in this frame; of QP those of the whole stream.
  range() {
    if (this.rangeKept) return this.rangeKept;
    const { map } = this.state;
    let least = Infinity, most = -Infinity;
    for (const { stream, arrays } of MAPS[map].value ? this.views : []) {
      if (map === "qp") for (const frame of stream.frames) {
        least = Math.min(least, frame.qp_least);
        most = Math.max(most, frame.qp_most);
      } else if (arrays) {
        const found = mapValues(map, arrays);
        least = Math.min(least, MAPS[map].flipped ? found.least : 0);
        most = Math.max(most, found.most);
      }
    }
    return this.rangeKept = least <= most ? [least, most] : [0, 1];
  }

  // The largest difference of the map between the two streams in this frame, at least 1.
  reach(arrays, other) {
    const { value } = MAPS[this.state.map];
    let most = 1;
    for (let mb = 0; mb < arrays.n; mb++) most = Math.max(most, Math.abs(value(arrays, mb) - value(other, mb)) || 0);
    return most;
  }

  captionOf(view) {
    const frame = view.stream.frames[view.n];
    const parts = [`${STREAMS.length > 1 ? `${"AB"[view.stream.number]}  ` : ""}frame ${view.n}`, `${FRAME_TYPES[frame.type]}${frame.idr ? " IDR" : ""}`,
      `${Math.round(frame.bits / 8).toLocaleString("en")} bytes`, `QP ${decimals(frame.qp, 1)}`];
    if (frame.psnr) parts.push(`${decimals(frame.psnr[0])} dB`);
    return parts.join("   ");
  }

  showLegend() {
    const { map, layers } = this.state, legend = byId("legend"), items = [], row = MAPS[map];
    const item = (colour, text) => {
      const swatch = element("i", { className: "swatch" });
      swatch.style.background = colour;
      return element("span", { className: "item" }, swatch, text);
    };
    if (map === "type") {
      const used = new Set(this.views.flatMap(view => view.arrays ? [...new Set(view.arrays.type)] : []));
      for (const k of [...used].sort((a, b) => a - b)) items.push(item(css(TYPE_COLOURS[k]), TYPES[k]));
    } else if (map !== "none") {
      items.push(this.scaleLegend(row, this.range(), t => viridis(t)));
      const last = this.views[this.views.length - 1], other = last.arrays && this.otherArrays(last);
      if (other) {
        const reach = this.reach(last.arrays, other);
        items.push(this.scaleLegend({ unit: `B − A, ${row.unit}` }, [-reach, reach], diverging));
      }
    } else {
      FRAME_TYPES.forEach((name, k) => items.push(item(FRAME_COLOURS[k], `${name} frame`)));
      if (STREAMS.length > 1) items.push(item("#ffffff", "bytes of B"));
      if (layers.has("partitions")) items.push(item("#78c8ff", "inter"), item("#ffb03c", "intra"));
      if (layers.has("transform")) items.push(item("#ff6ed2", "8x8 transform"), item("#78e6b4", "4x4, with levels"));
      if (layers.has("list0")) items.push(item(REFERENCE_COLOURS[0][0], "list 0, ref_idx 0"), item(REFERENCE_COLOURS[0][1], "1"), item(REFERENCE_COLOURS[0][2], "2"), item(REFERENCE_COLOURS[0][3], "3 +"));
      if (layers.has("list1")) items.push(item(REFERENCE_COLOURS[1][0], "list 1, ref_idx 0"), item(REFERENCE_COLOURS[1][1], "1"));
      if (layers.has("strength")) STRENGTH_COLOURS.forEach((colour, k) => items.push(item(colour, `bS ${k + 1}`)));
    }
    legend.replaceChildren(...items, element("span", { id: "place", textContent: this.placeText ?? "" }));
  }

  scaleLegend(row, [least, most], colour) {
    const canvas = element("canvas", { width: 190, height: 1 }), context = canvas.getContext("2d");
    for (let x = 0; x < 190; x++) {
      const t = row.root ? Math.sqrt(x / 189) : x / 189;
      context.fillStyle = css(colour(row.flipped ? 1 - t : t));
      context.fillRect(x, 0, 1, 1);
    }
    const text = value => Number.isInteger(value) ? String(value) : value.toFixed(1);
    return element("span", { className: "scale" }, text(least), canvas, text(most), element("span", { className: "soft", textContent: row.unit }));
  }

  hover(view, event) {
    const found = event ? view.at(event) : { mb: -1 }, tip = byId("tip");
    this.placeText = found.mb < 0 ? "" : `${found.x}, ${found.y}   zoom ${decimals(PLACE.scale)}`;
    byId("place") && (byId("place").textContent = this.placeText);
    tip.hidden = found.mb < 0 || !view.arrays;
    if (!tip.hidden) {
      const rows = macroblockRows(view.stream, view.n, view.arrays, found.mb, true), motion = motionRows(view.stream, view.n, view.arrays, found.mb);
      const text = motion.slice(0, 4).map(([at, r0, v0, r1, v1]) => [at, [r0 && `L0 ${r0}: ${v0}`, r1 && `L1 ${r1}: ${v1}`].filter(Boolean).join("   ")]);
      if (motion.length > 4) text.push(["", `... ${motion.length} partitions`]);
      if (found.mb !== this.hovered) tip.replaceChildren(table([...rows, ...text]));
      placeTip(tip, event);
    }
    if (found.mb === this.hovered) return;
    this.hovered = found.mb;
    for (const each of this.views) each.draw();
    if (this.state.tab === "macroblock" && this.state.mb < 0) this.showPanel();
  }

  select(mb) {
    this.state.mb = mb === this.state.mb ? -1 : mb;
    if (this.state.mb >= 0 && this.state.tab !== "macroblock") this.setTab("macroblock");
    else this.showPanel();
    for (const view of this.views) view.draw();
  }

  timeTip(n, event, tip) {
    const streams = STREAMS.filter(stream => stream.frames[n]);
    tip.hidden = n === undefined || !streams.length;
    if (tip.hidden) return;
    tip.replaceChildren(element("b", { textContent: `frame ${n}` }), ...streams.flatMap(stream =>
      [...(STREAMS.length > 1 ? [streamTitle(stream)] : []), table(frameRows(stream, n))]));
    placeTip(tip, event);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(number|text)$/.test(event.target.type ?? "")) return;
    const actions = {
      ArrowLeft: () => this.step(event.shiftKey ? -10 : -1), ArrowRight: () => this.step(event.shiftKey ? 10 : 1),
      Home: () => this.step(-Infinity), End: () => this.step(Infinity), " ": () => this.play(), o: () => this.setOrder(this.state.order === "display" ? "coded" : "display"),
      "+": () => this.views[0].zoom(1.25), "-": () => this.views[0].zoom(.8), 0: () => this.fit(), "?": () => byId("help").showModal(),
      Escape: () => this.state.mb >= 0 && this.select(this.state.mb), x: () => STREAMS.length > 1 && this.setDifference(),
    };
    for (const [name, row] of Object.entries(LAYERS)) if (this.has(row)) actions[row.key] = () => this.toggle(name);
    for (const [name, row] of Object.entries(MAPS)) if (row.key && this.has(row)) actions[row.key] = () => this.setMap(this.state.map === name ? "none" : name);
    const act = actions[event.key];
    if (!act || byId("help").open) return;
    event.preventDefault();
    act();
  }
}

const byId = id => document.getElementById(id);

function placeTip(tip, event) {
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.min(event.clientX + 16, window.innerWidth - width - 8)}px`;
  tip.style.top = `${event.clientY + 16 + height > window.innerHeight ? Math.max(4, event.clientY - height - 12) : event.clientY + 16}px`;
}

const app = new App();
app.resize();
app.views[0].fit();
app.setTab(STREAMS.length > 1 ? "compare" : "frame");
const ready = app.go(0);
window.report = { app, streams: STREAMS, ready, place: PLACE, plane, partitions, intraBlocks, boundaryStrengths };
