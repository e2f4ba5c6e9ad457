// The timeline: sizes, QPs and quality or buffer of all frames, references of the current one; zoom and pan.

const GUTTER = 106,
  RIGHT = 12;
// What the lowest lane can show, where the streams have it.
const CURVES = {
  psnr: { name: "PSNR, dB", value: (frame) => frame.psnr?.[0] },
  ssim: { name: "SSIM", value: (frame) => frame.ssim, digits: 4, spread: 0.001 },
  buffer: { name: "buffer, %", value: (frame) => frame.buffer && (frame.buffer[0] / frame.buffer[2]) * 100 },
  skip: { name: "skip, %", value: (frame, stream) => (100 * frame.skip) / stream.mbs },
  intra: { name: "intra, %", value: (frame, stream) => (100 * frame.intra) / stream.mbs },
};
const LANES = { references: [4, 26], sizes: [30, 96], qp: [104, 134], quality: [142, 168] }; // top, bottom

class Timeline {
  constructor(app, canvas, tip) {
    Object.assign(this, { app, canvas, tip });
    this.context = canvas.getContext("2d");
    this.count = Math.max(...STREAMS.map((stream) => stream.frames.length));
    this.range = [0, this.count];
    const choice = byId("curve");
    for (const [name, row] of Object.entries(CURVES)) {
      if (STREAMS.some((stream) => stream.frames.some((frame) => row.value(frame, stream) !== undefined))) {
        choice.append(element("option", { value: name, textContent: row.name }));
      }
    }
    choice.addEventListener("change", () => {
      this.draw();
      choice.blur();
    });
    this.choice = choice;
    this.listen();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1,
      box = this.canvas.getBoundingClientRect();
    this.width = box.width;
    this.ratio = ratio;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
  }

  frameAt(place, stream = STREAMS[0]) {
    return this.app.state.order === "display" ? place : (stream.inCodingOrder[place] ?? place);
  }
  placeOf(n, stream = STREAMS[0]) {
    return this.app.state.order === "display" ? n : (stream.frames[n]?.place ?? n);
  }
  x(place) {
    return GUTTER + ((place - this.range[0]) / (this.range[1] - this.range[0])) * (this.width - GUTTER - RIGHT);
  }
  placeAt(x) {
    return Math.floor(this.range[0] + ((x - GUTTER) / (this.width - GUTTER - RIGHT)) * (this.range[1] - this.range[0]));
  }

  // Keep the current frame in sight.
  follow(n) {
    const place = this.placeOf(n),
      [first, end] = this.range,
      length = end - first;
    if (place < first || place >= end) this.moveTo(place + 0.5 - length / 2, length);
  }

  moveTo(first, length) {
    length = Math.min(this.count, Math.max(Math.min(this.count, 8), length));
    first = Math.min(Math.max(0, first), this.count - length);
    this.range = [first, first + length];
  }

  draw() {
    const { context, app } = this;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, 178);
    context.font = '10px system-ui, "DejaVu Sans", sans-serif';
    const first = Math.floor(this.range[0]),
      end = Math.min(this.count, Math.ceil(this.range[1]));
    this.drawCurrent(app.state.n);
    this.drawSizes(first, end);
    this.drawLines("qp", first, end, { name: "QP", value: (frame) => frame.qp });
    this.drawLines("quality", first, end, { ...CURVES[this.choice.value], name: "" });
    this.drawReferences(app.state.n);
    this.drawRuler(first, end);
  }

  drawCurrent(n) {
    const place = this.placeOf(n),
      left = this.x(place),
      width = Math.max(2, this.x(place + 1) - left);
    this.context.fillStyle = "rgba(255,255,255,.10)";
    this.context.fillRect(left, 0, width, 170);
  }

  // Bars of the first stream, coloured by type; the second stream is an outline. Narrow bars become one: the largest.
  drawSizes(first, end) {
    const [top, bottom] = LANES.sizes,
      { context } = this;
    let most = 1;
    for (const stream of STREAMS)
      for (let k = first; k < end; k++) {
        if (k < stream.frames.length) most = Math.max(most, stream.frames[this.frameAt(k, stream)].bits);
      }
    this.scale(top, bottom, `${short(most / 8)}B`, "0", "size");
    const step = Math.max(1, Math.ceil((end - first) / (this.width - GUTTER)));
    for (let k = first - (first % step); k < end; k += step) {
      let best = null;
      for (let j = Math.max(k, 0); j < Math.min(k + step, STREAMS[0].frames.length); j++) {
        const frame = STREAMS[0].frames[this.frameAt(j)];
        if (!best || frame.bits > best.bits) best = frame;
      }
      if (!best) continue;
      const left = this.x(k),
        right = this.x(k + step),
        gap = right - left > 4 ? 1 : 0,
        height = Math.max(1, (best.bits / most) * (bottom - top));
      context.fillStyle = FRAME_COLOURS[best.type];
      context.fillRect(left, bottom - height, Math.max(0.8, right - left - gap), height);
      if (best.idr && right - left > 3) {
        context.fillStyle = "#ffffff";
        context.fillRect(left, bottom + 1.5, right - left - gap, 1.5);
      }
    }
    if (STREAMS[1]) this.steps(STREAMS[1], first, end, (frame) => bottom - (frame.bits / most) * (bottom - top), "#ffffff");
  }

  steps(stream, first, end, y, colour, width = 1.2) {
    const { context } = this;
    context.beginPath();
    let open = false;
    const step = Math.max(1, Math.floor((end - first) / (2 * (this.width - GUTTER))));
    for (let k = first; k < Math.min(end, stream.frames.length); k += step) {
      const value = y(stream.frames[this.frameAt(k, stream)]);
      if (!Number.isFinite(value)) {
        open = false;
        continue;
      }
      if (open) context.lineTo(this.x(k), value);
      else context.moveTo(this.x(k), value);
      context.lineTo(this.x(k + step), value);
      open = true;
    }
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }

  drawLines(lane, first, end, { name, value, digits = 1, spread: smallest = 1 }) {
    const [top, bottom] = LANES[lane];
    let least = Infinity,
      most = -Infinity;
    for (const stream of STREAMS)
      for (let k = first; k < Math.min(end, stream.frames.length); k++) {
        const number = value(stream.frames[this.frameAt(k, stream)], stream);
        if (Number.isFinite(number)) {
          least = Math.min(least, number);
          most = Math.max(most, number);
        }
      }
    if (least > most) return;
    const spread = Math.max(most - least, smallest);
    this.scale(top, bottom, most.toFixed(digits), least.toFixed(digits), name);
    STREAMS.forEach((stream, k) =>
      this.steps(
        stream,
        first,
        end,
        (frame) => bottom - 1 - ((value(frame, stream) - least) / spread) * (bottom - top - 2),
        STREAM_COLOURS[k],
      ),
    );
  }

  scale(top, bottom, most, least, label = "") {
    const { context } = this;
    context.fillStyle = "#949ba6";
    context.textAlign = "right";
    context.textBaseline = "top";
    context.fillText(most, GUTTER - 6, top - 1);
    context.textBaseline = "bottom";
    context.fillText(least, GUTTER - 6, bottom + 1);
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(label, 10, (top + bottom) / 2);
    context.strokeStyle = "#30353b";
    context.lineWidth = 1;
    context.beginPath();
    line(context, GUTTER, bottom + 0.5, this.width - RIGHT, bottom + 0.5);
    context.stroke();
  }

  // Arcs from the current frame to its references: list 0 and list 1.
  drawReferences(n) {
    const { context } = this,
      [top, bottom] = LANES.references,
      centre = (k) => (this.x(this.placeOf(k)) + this.x(this.placeOf(k) + 1)) / 2;
    const lists = STREAMS[0].frames[n]?.lists;
    context.fillStyle = "#949ba6";
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillText("references", 10, (top + bottom) / 2);
    if (!lists) return;
    const arcs = new Map();
    for (const slice of lists)
      slice.forEach((list, k) =>
        list.forEach((to) => {
          if (to >= 0) arcs.set(`${k} ${to}`, [k, to]);
        }),
      );
    context.lineWidth = 1.3;
    for (const [list, to] of arcs.values()) {
      const a = centre(n),
        b = centre(to),
        rise = Math.min(bottom - top, 6 + Math.abs(a - b) / 5);
      context.strokeStyle = context.fillStyle = REFERENCE_COLOURS[list][0];
      context.beginPath();
      context.moveTo(a, bottom);
      context.bezierCurveTo(a, bottom - 1.3 * rise, b, bottom - 1.3 * rise, b, bottom);
      context.stroke();
      context.beginPath();
      context.moveTo(b, bottom + 2);
      context.lineTo(b - 3, bottom - 3);
      context.lineTo(b + 3, bottom - 3);
      context.fill();
    }
  }

  drawRuler(first, end) {
    const { context } = this,
      length = end - first;
    const inSeconds = this.app.state.order === "display", // else neighbours are not one after another in time
      most = inSeconds ? 9 : 14; // labels
    const step =
      [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000].find((s) => s * most > length) || 100000;
    this.ticks = [];
    context.fillStyle = "#6c737d";
    context.textAlign = "center";
    context.textBaseline = "bottom";
    for (let k = Math.ceil(first / step) * step; k < end; k += step) {
      const n = this.frameAt(k);
      if (n === undefined) continue;
      const text = inSeconds ? `${n} · ${decimals(n / STREAMS[0].fps, 2)} s` : String(n);
      this.ticks.push(text);
      context.fillText(text, (this.x(k) + this.x(k + 1)) / 2, 178);
    }
  }

  listen() {
    let drag = null;
    const { canvas } = this;
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const x = event.clientX - canvas.getBoundingClientRect().left,
          length = this.range[1] - this.range[0];
        const at = this.range[0] + ((x - GUTTER) / (this.width - GUTTER - RIGHT)) * length;
        const wanted = Math.min(this.count, Math.max(Math.min(this.count, 8), length * Math.exp(event.deltaY / 400)));
        this.moveTo(at - ((at - this.range[0]) * wanted) / length, wanted);
        this.draw();
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, range: [...this.range], moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const x = event.clientX - canvas.getBoundingClientRect().left;
      if (drag && (drag.moved || Math.abs(event.clientX - drag.x) > 4)) {
        const length = drag.range[1] - drag.range[0];
        drag.moved = true;
        this.moveTo(drag.range[0] - ((event.clientX - drag.x) / (this.width - GUTTER - RIGHT)) * length, length);
        this.draw();
      }
      const place = this.placeAt(x);
      this.app.timeTip(x >= GUTTER && place >= 0 && place < this.count ? this.frameAt(place) : undefined, event, this.tip);
    });
    canvas.addEventListener("pointerup", (event) => {
      const x = event.clientX - canvas.getBoundingClientRect().left,
        place = this.placeAt(x);
      if (drag && !drag.moved && x >= GUTTER && place >= 0 && place < this.count) this.app.go(this.frameAt(place));
      drag = null;
    });
    canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
    canvas.addEventListener("dblclick", () => {
      this.moveTo(0, this.count);
      this.draw();
    });
  }
}

const short = (value) =>
  value >= 1e6 ? `${(value / 1e6).toFixed(2)} M` : value >= 1e4 ? `${(value / 1e3).toFixed(1)} k` : `${Math.round(value)} `;
