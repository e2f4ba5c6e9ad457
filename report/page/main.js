// The page: its state, what the tools, keys and panels do with it, and `window.report` for tests and the console.

class App {
  constructor() {
    this.state = {
      n: 0,
      order: "display",
      map: "none",
      opacity: 0.55,
      picture: "decoded",
      layers: new Set(["partitions"]),
      mb: -1,
      tab: "frame",
      difference: false,
    };
    this.hovered = -1;
    this.ranges = new Map();
    for (const stream of STREAMS) {
      stream.inCodingOrder.forEach((n, place) => {
        stream.frames[n].place = place;
      });
      stream.videos = {
        decoded: new Pictures({
          prefix: `${stream.key}u`,
          codec: stream.codec,
          access: stream.access,
          coded: (n) => stream.frames[n].coded,
          display: (coded) => stream.byCoded[coded],
        }),
      };
      for (const name of ["source", "prediction"]) {
        if (stream[name]) stream.videos[name] = new Pictures({ ...stream[name], coded: (n) => n, display: (n) => n });
      }
    }
    this.views = STREAMS.map((stream) => new View(stream, this));
    byId("views").append(...this.views.map((view) => view.root));
    this.timeline = new Timeline(this, byId("time"), byId("time-tip"));
    makeTop(this);
    makeTools(this);
    makeTabs(this);
    window.addEventListener("resize", () => this.resize());
    document.addEventListener("keydown", (event) => onKey(this, event));
  }

  has(row) {
    return !row.needs || STREAMS.some((stream) => stream.has[row.needs]);
  }

  setTab(name) {
    this.state.tab = name;
    for (const button of byId("tabs").children) button.classList.toggle("on", button.dataset.tab === name);
    byId("panel").scrollTop = 0;
    this.showPanel();
  }

  showPanel() {
    const panels = {
      macroblock: macroblockPanel,
      frame: framePanel,
      totals: totalsPanel,
      stream: streamPanel,
      compare: comparePanel,
    };
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
    const shown = Promise.all(
      this.views.map((view) => view.show(Math.min(state.n, view.stream.frames.length - 1), state.picture)),
    );
    const all = await shown.catch((error) => {
      this.views[0].note.textContent = error.message;
      this.views[0].note.hidden = false;
      return [];
    });
    if (!all.length || !all.every(Boolean)) return false;
    if (["frame", "macroblock", "compare"].includes(state.tab)) this.showPanel();
    this.redraw();
    return true;
  }

  step(count) {
    const { timeline } = this,
      place = Math.min(Math.max(0, timeline.placeOf(this.state.n) + count), timeline.count - 1);
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
      await new Promise((resolve) => setTimeout(resolve, due - performance.now()));
    }
    this.playing = false;
    byId("play").textContent = "play";
  }

  setOrder(order) {
    this.state.order = order;
    showTools(this);
    this.timeline.follow(this.state.n);
    this.timeline.draw();
  }

  setPicture(picture) {
    this.state.picture = picture;
    showTools(this);
    return this.go(this.state.n);
  }
  setMap(map) {
    this.state.map = map;
    showTools(this);
    this.redraw();
  }
  setDifference() {
    this.state.difference = !this.state.difference;
    showTools(this);
    this.redraw();
  }
  toggle(layer) {
    const { layers } = this.state;
    if (!layers.delete(layer)) layers.add(layer);
    showTools(this);
    this.redraw();
  }

  // Views -------------------------------------------------------------------------------------------------------------

  redraw() {
    this.rangeKept = null;
    for (const view of this.views) view.draw();
    showLegend(this);
  }

  resize() {
    this.timeline.resize();
    this.timeline.draw();
    for (const view of this.views) view.resize();
    if (PLACE.fitted) this.views[0].fit();
    this.redraw();
  }

  fit() {
    this.views[0].fit();
    this.redraw();
  }

  // The arrays of A where B shows the difference to it.
  otherArrays(view) {
    const first = this.views[0];
    return this.state.difference && view.stream.number === 1 && view.arrays.n === first.arrays?.n && this.state.map !== "type"
      ? first.arrays
      : null;
  }

  // The scale of the current map: values of both streams in this frame; of QP those of the whole stream.
  range() {
    if (this.rangeKept) return this.rangeKept;
    const { map } = this.state;
    let least = Infinity,
      most = -Infinity;
    for (const { stream, arrays } of MAPS[map].value ? this.views : []) {
      if (map === "qp")
        for (const frame of stream.frames) {
          least = Math.min(least, frame.qp_least);
          most = Math.max(most, frame.qp_most);
        }
      else if (arrays) {
        const range = mapValues(map, arrays);
        least = Math.min(least, MAPS[map].flipped ? range.least : 0);
        most = Math.max(most, range.most);
      }
    }
    return (this.rangeKept = least <= most ? [least, most] : [0, 1]);
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
    const phrases = [
      `${STREAMS.length > 1 ? `${"AB"[view.stream.number]}  ` : ""}frame ${view.n}`,
      `${FRAME_TYPES[frame.type]}${frame.idr ? " IDR" : ""}`,
      `${Math.round(frame.bits / 8).toLocaleString("en")} bytes`,
      `QP ${decimals(frame.qp, 1)}`,
    ];
    if (frame.psnr) phrases.push(`${decimals(frame.psnr[0])} dB`);
    return phrases.join("   ");
  }

  hover(view, event) {
    const hit = event ? view.at(event) : { mb: -1 },
      tip = byId("tip");
    this.placeText = hit.mb < 0 ? "" : `${hit.x}, ${hit.y}   zoom ${decimals(PLACE.scale)}`;
    byId("place") && (byId("place").textContent = this.placeText);
    tip.hidden = hit.mb < 0 || !view.arrays;
    if (!tip.hidden) {
      const rows = macroblockRows(view.stream, view.n, view.arrays, hit.mb, true),
        motion = motionRows(view.stream, view.n, view.arrays, hit.mb);
      const text = motion
        .slice(0, 4)
        .map(([at, r0, v0, r1, v1]) => [at, [r0 && `L0 ${r0}: ${v0}`, r1 && `L1 ${r1}: ${v1}`].filter(Boolean).join("   ")]);
      if (motion.length > 4) text.push(["", `... ${motion.length} partitions`]);
      if (hit.mb !== this.hovered) tip.replaceChildren(table([...rows, ...text]));
      placeTip(tip, event);
    }
    if (hit.mb === this.hovered) return;
    this.hovered = hit.mb;
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
    const streams = STREAMS.filter((stream) => stream.frames[n]);
    tip.hidden = n === undefined || !streams.length;
    if (tip.hidden) return;
    tip.replaceChildren(
      element("b", { textContent: `frame ${n}` }),
      ...streams.flatMap((stream) => [...(STREAMS.length > 1 ? [streamTitle(stream)] : []), table(frameRows(stream, n))]),
    );
    placeTip(tip, event);
  }
}

const byId = (id) => document.getElementById(id);

function placeTip(tip, event) {
  const { width, height } = tip.getBoundingClientRect(),
    side = byId("side").getBoundingClientRect().left; // the panel stays free: at its edge the box is to the left of the pointer
  const right = event.clientX + 16,
    left = right + width > side ? Math.min(event.clientX, side) - width - 12 : right;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${event.clientY + 16 + height > window.innerHeight ? Math.max(4, event.clientY - height - 12) : event.clientY + 16}px`;
}

const app = new App();
app.resize();
app.views[0].fit();
app.setTab(STREAMS.length > 1 ? "compare" : "frame");
const ready = app.go(0);
window.report = { app, streams: STREAMS, ready, place: PLACE, plane, partitions, intraBlocks, boundaryStrengths };
