// A view of one stream: its picture with maps and layers, zoom and pan shared by all views, the macroblock below the pointer.

const PLACE = { scale: 1, x: 0, y: 0, fitted: true };
const PICTURES = {
  decoded: { name: "decoded" },
  source: { name: "source", needs: "source" },
  difference: { name: "difference to source, ×4", needs: "source" },
  prediction: { name: "prediction", needs: "prediction" },
  residual: { name: "residual, ×4", needs: "prediction" },
  other: { name: "difference of A and B, ×4", two: true },
  blank: { name: "none" },
};
const GAIN = 4;

class View {
  constructor(stream, app) {
    Object.assign(this, { stream, app });
    stream.crop2 = [stream.crop[0], stream.crop[2]];
    this.root = element("div", { className: "view" });
    this.canvas = element("canvas", { tabIndex: -1 });
    this.caption = element("div", { className: "caption" });
    this.note = element("div", { className: "note", hidden: true });
    this.root.append(this.canvas, this.caption, this.note);
    this.picture = document.createElement("canvas");
    this.picture.width = stream.width;
    this.picture.height = stream.height;
    this.context = this.canvas.getContext("2d");
    this.n = -1;
    this.token = 0;
    this.drawn = {};
    this.listen();
  }

  videos(content) {
    const of = {
      decoded: ["decoded"],
      source: ["source"],
      difference: ["decoded", "source"],
      prediction: ["prediction"],
      residual: ["decoded", "prediction"],
      other: ["decoded"],
      blank: [],
    };
    return of[content];
  }

  // Load a frame and draw it when all of it is there; what is drawn always belongs together.
  async show(n, content) {
    const token = ++this.token,
      stream = this.stream;
    const videos = this.videos(content).map((name) => stream.videos[name]);
    const wanted = videos.map((video) => video.get(n));
    const other = content === "other" ? this.app.views.find((view) => view !== this)?.stream : null;
    if (other) wanted.push(other.videos.decoded.get(Math.min(this.app.state.n, other.frames.length - 1)));
    const [arrays, ...pictures] = await Promise.all([stream.arrays(n), ...wanted]);
    if (token !== this.token) return false;
    const failure = videos.map((video) => video.reason(n)).find(Boolean) ?? other?.videos.decoded.failure ?? "";
    if (!failure && pictures.some((picture) => !picture)) return false;
    this.n = n;
    this.arrays = arrays;
    this.paint(content, failure ? [] : pictures);
    this.note.textContent = failure;
    this.note.hidden = !failure;
    this.draw();
    return true;
  }

  paint(content, pictures) {
    const context = this.picture.getContext("2d");
    context.fillStyle = content === "blank" || !pictures.length ? "#26292d" : "#808080";
    context.fillRect(0, 0, this.stream.width, this.stream.height);
    if (!pictures.length) return;
    if (pictures.length === 1) paintPicture(context, pictures[0]);
    else {
      const [a, b] = this.stream.number ? [pictures[1], pictures[0]] : pictures;
      if (content === "other" && (a.width !== b.width || a.height !== b.height)) return;
      paintDifference(context, content === "other" ? a : pictures[0], content === "other" ? b : pictures[1], GAIN);
    }
  }

  resize() {
    const ratio = window.devicePixelRatio || 1,
      box = this.root.getBoundingClientRect();
    this.size = [box.width, box.height];
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.ratio = ratio;
  }

  fit() {
    const [width, height] = this.size,
      { stream } = this;
    PLACE.scale = Math.min((width - 16) / stream.width, (height - 16) / stream.height);
    PLACE.x = (width - stream.width * PLACE.scale) / 2;
    PLACE.y = (height - stream.height * PLACE.scale) / 2;
    PLACE.fitted = true;
  }

  draw() {
    const { context, stream, arrays, app } = this,
      { scale, x, y } = PLACE;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, ...this.size);
    if (!arrays) return;
    const width = stream.width * scale,
      height = stream.height * scale;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.imageSmoothingEnabled = scale < 2;
    context.drawImage(this.picture, x, y, width, height);
    if (app.state.map !== "none") {
      context.globalCompositeOperation = "saturation"; // grey, so that colours are those of the map
      context.fillStyle = "#808080";
      context.fillRect(x, y, width, height);
      context.globalCompositeOperation = "source-over";
      this.drawMap();
    }
    this.drawn = drawLayers(context, app.state.layers, stream, this.n, arrays, PLACE, this.size);
    context.restore();
    this.outline(app.state.mb, "#ffffff", 2);
    if (app.hovered !== app.state.mb) this.outline(app.hovered, "rgba(255,255,255,.6)", 1);
    this.caption.textContent = app.captionOf(this);
  }

  drawMap() {
    const { context, stream, app } = this,
      { scale, x, y } = PLACE;
    const small = document.createElement("canvas");
    small.width = stream.mb_width;
    small.height = stream.mb_height;
    const other = app.otherArrays(this);
    small
      .getContext("2d")
      .putImageData(
        mapImage(app.state.map, stream, this.arrays, app.range(), other, other && app.reach(this.arrays, other)),
        0,
        0,
      );
    context.imageSmoothingEnabled = false;
    context.globalAlpha = app.state.opacity;
    context.drawImage(
      small,
      x - stream.crop2[0] * scale,
      y - stream.crop2[1] * scale,
      16 * stream.mb_width * scale,
      16 * stream.mb_height * scale,
    );
    context.globalAlpha = 1;
    if (16 * scale >= 36 && app.state.map !== "type") this.drawValues(other);
  }

  // The values of the map as numbers, where macroblocks are large enough.
  drawValues(other) {
    const { context, stream, app, arrays } = this,
      { scale, x, y } = PLACE,
      { value } = MAPS[app.state.map];
    context.font = `${Math.min(15, Math.round(4 * scale))}px system-ui, "DejaVu Sans", sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.strokeStyle = "rgba(0,0,0,.65)";
    context.fillStyle = "#ffffff";
    for (let mb = 0; mb < arrays.n; mb++) {
      const cx = x + (16 * (mb % stream.mb_width) + 8 - stream.crop2[0]) * scale,
        cy = y + (16 * Math.floor(mb / stream.mb_width) + 8 - stream.crop2[1]) * scale;
      const number = value(arrays, mb) - (other ? value(other, mb) : 0);
      if (cx < -20 || cy < -20 || cx > this.size[0] + 20 || cy > this.size[1] + 20 || Number.isNaN(number)) continue;
      const text = (other && number > 0 ? "+" : "") + (Number.isInteger(number) ? number : number.toFixed(1));
      context.strokeText(text, cx, cy);
      context.fillText(text, cx, cy);
    }
  }

  outline(mb, colour, width) {
    if (mb < 0 || mb >= this.stream.mbs) return;
    const { scale } = PLACE,
      [left, top] = this.stream.crop2,
      column = mb % this.stream.mb_width;
    this.context.strokeStyle = colour;
    this.context.lineWidth = width;
    this.context.strokeRect(
      PLACE.x + (16 * column - left) * scale,
      PLACE.y + (16 * Math.floor(mb / this.stream.mb_width) - top) * scale,
      16 * scale,
      16 * scale,
    );
  }

  // The macroblock at a position of the window, -1 outside of the picture.
  at(event) {
    const box = this.canvas.getBoundingClientRect(),
      { stream } = this;
    const x = Math.floor((event.clientX - box.left - PLACE.x) / PLACE.scale),
      y = Math.floor((event.clientY - box.top - PLACE.y) / PLACE.scale);
    if (x < 0 || y < 0 || x >= stream.width || y >= stream.height) return { mb: -1 };
    const mb = ((y + stream.crop2[1]) >> 4) * stream.mb_width + ((x + stream.crop2[0]) >> 4);
    return { mb, x, y };
  }

  zoom(factor, x = this.size[0] / 2, y = this.size[1] / 2) {
    const scale = Math.min(64, Math.max(0.05, PLACE.scale * factor)),
      by = scale / PLACE.scale;
    PLACE.x = x - (x - PLACE.x) * by;
    PLACE.y = y - (y - PLACE.y) * by;
    PLACE.scale = scale;
    PLACE.fitted = false;
    this.app.redraw();
  }

  listen() {
    let drag = null;
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const box = this.canvas.getBoundingClientRect();
        this.zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
      },
      { passive: false },
    );
    this.canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (drag && (drag.moved || Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4)) {
        PLACE.x += event.clientX - drag.x;
        PLACE.y += event.clientY - drag.y;
        PLACE.fitted = false;
        drag = { x: event.clientX, y: event.clientY, moved: true };
        this.app.redraw();
        return;
      }
      this.app.hover(this, event);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) this.app.select(this.at(event).mb);
      drag = null;
    });
    this.canvas.addEventListener("pointerleave", () => this.app.hover(this, null));
    this.canvas.addEventListener("dblclick", () => {
      this.app.fit();
    });
  }
}
