// The panels of a whole stream: totals, parameter sets and NAL units in clear text, and two streams compared.

const KIND_COLOURS = ["#7a828e", "#e69f00", "#56b4e9", "#3fbf96", "#cc79a7", "#f0e442", "#d55e00", "#9a86e8"];
const sum = (values) => values.reduce((a, b) => a + b, 0);

function totalsPanel() {
  const out = [];
  for (const stream of STREAMS) {
    const { totals } = stream,
      frames = stream.frames;
    if (STREAMS.length > 1) out.push(streamTitle(stream));
    out.push(element("h2", { textContent: "frames" }), typeTable(stream));
    out.push(element("h2", { textContent: "bits by kind of syntax" }), shares(kindShares(stream), "bits"));
    out.push(
      element("h2", { textContent: "macroblocks by type" }),
      shares(
        TYPES.map((name, k) => [name, sum(totals.types.map((row) => row[k])), css(TYPE_COLOURS[k])]),
        "macroblocks",
      ),
    );
    out.push(
      element("h2", { textContent: "bits by type" }),
      shares(
        TYPES.map((name, k) => [name, sum(totals.type_bits.map((row) => row[k])), css(TYPE_COLOURS[k])]),
        "bits",
      ),
    );
    out.push(
      element("h2", { textContent: "QP of macroblocks" }),
      frameTypeKey(),
      histogram(
        totals.qp.map((values, k) => ({ values, colour: FRAME_COLOURS[k], name: `${FRAME_TYPES[k]} frames` })),
        (k, full) => (full ? `QP ${k}` : k % 5 ? "" : String(k)),
        "",
      ),
    );
    if (sum(totals.lengths)) {
      const last = totals.reach;
      out.push(
        element("h2", { textContent: "vector lengths in luma samples, share of the area" }),
        histogram(
          [{ values: totals.lengths, colour: "#6cb2eb" }],
          (k, full) => (full ? `length ${k}${k === last ? " and more" : ""}` : k % 4 ? "" : `${k}${k === last ? "+" : ""}`),
          "",
        ),
      );
      out.push(element("h2", { textContent: `vectors up to ±${last} luma samples, share of the area` }), vectorMap(totals));
      totals.references.forEach((values, list) => {
        const used = values.reduce((most, value, k) => (value ? k + 1 : most), 0);
        if (used)
          out.push(
            element("h2", { textContent: `references (ref_idx) of list ${list}, share of the area` }),
            shares(
              values
                .slice(0, used)
                .map((value, k) => [String(k), value, css(viridis(0.15 + (0.85 * k) / Math.max(1, used - 1)))]),
              "4x4 blocks",
            ),
          );
      });
    }
    const quality = frames.filter((frame) => frame.psnr);
    if (quality.length)
      out.push(
        element("h2", { textContent: "quality, mean of frames" }),
        table([
          [
            "PSNR Y Cb Cr",
            `${[0, 1, 2].map((k) => decimals(sum(quality.map((f) => f.psnr[k])) / quality.length)).join(", ")} dB`,
          ],
          ["PSNR all", `${decimals(sum(quality.map((f) => f.psnr[3])) / quality.length)} dB`],
          ["SSIM", decimals(sum(quality.map((f) => f.ssim)) / quality.length, 5)],
        ]),
      );
  }
  return out;
}

function typeTable(stream) {
  const rows = FRAME_TYPES.map((name, k) => [name, stream.frames.filter((frame) => frame.type === k)]).filter(
    ([, frames]) => frames.length,
  );
  rows.push(["all", stream.frames]);
  return table(
    rows.map(([name, frames]) => [
      name,
      frames.length.toLocaleString("en"),
      (sum(frames.map((f) => f.bits)) / 8).toLocaleString("en"),
      Math.round(sum(frames.map((f) => f.bits)) / 8 / frames.length).toLocaleString("en"),
      decimals(sum(frames.map((f) => f.qp)) / frames.length),
    ]),
    ["type", "frames", "bytes", "mean", "QP"],
  );
}

function kindShares(stream) {
  const { totals } = stream,
    rest = sum(totals.header_bits);
  const shares = META.constants.kinds.map((name, k) => [
    name,
    Math.round(sum(totals.kinds.map((row) => row[k])) / totals.unit),
    KIND_COLOURS[k + 1],
  ]);
  return [["headers, other NAL units", rest, KIND_COLOURS[0]], ...shares];
}

function frameTypeKey() {
  return element(
    "div",
    { className: "keys" },
    ...FRAME_TYPES.map((name, k) => {
      const mark = swatch(FRAME_COLOURS[k]);
      return element("span", {}, mark, name);
    }),
  );
}

// The vectors of a stream as an image: logarithm of the area that has them.
function vectorMap(totals) {
  const size = totals.vectors.length,
    canvas = element("canvas", { width: size, height: size }),
    image = new ImageData(size, size);
  const most = Math.log1p(totals.vectors.reduce((m, row) => Math.max(m, ...row), 0)) || 1;
  totals.vectors.forEach((row, y) =>
    row.forEach((value, x) => image.data.set([...viridis(Math.log1p(value) / most), 255], 4 * (y * size + x))),
  );
  canvas.getContext("2d").putImageData(image, 0, 0);
  return element(
    "div",
    { className: "chart" },
    canvas,
    element("div", {
      className: "soft",
      textContent: "right: horizontal part; down: vertical part; a square is one sample, those at the edge also count longer vectors; brighter = more (logarithmic)",
    }),
  );
}

function streamPanel() {
  const out = [];
  for (const stream of STREAMS) {
    if (STREAMS.length > 1) out.push(streamTitle(stream));
    if (stream.error)
      out.push(element("div", { className: "warning", textContent: `The stream is broken: ${stream.error}` }));
    if (stream.cut)
      out.push(
        element("div", {
          className: "warning",
          textContent: `The page ends after ${stream.frames.length} frames; the stream goes on.`,
        }),
      );
    out.push(element("h2", { textContent: "summary" }), element("pre", { textContent: stream.summary.join("\n") }));
    out.push(element("h2", { textContent: "parameter sets" }));
    for (const { name, rows } of stream.sets)
      out.push(element("details", {}, element("summary", { textContent: name }), table(rows)));
    if (stream.sei?.length) {
      out.push(element("h2", { textContent: "SEI messages" }));
      for (const { name, count, text } of stream.sei) {
        out.push(
          element(
            "details",
            { open: count === 1 },
            element("summary", { textContent: `${name}, ${count}` }),
            element("pre", { textContent: text }),
          ),
        );
      }
    }
    out.push(
      element("h2", { textContent: "NAL units: place in the stream, size, type" }),
      element("pre", {
        className: "lines",
        textContent: stream.lines.join("\n") + (stream.more_lines ? `\n... and ${stream.more_lines} more` : ""),
      }),
    );
  }
  return out;
}

function comparePanel(app) {
  const [a, b] = STREAMS,
    count = Math.min(a.frames.length, b.frames.length),
    n = Math.min(app.state.n, count - 1);
  const mean = (stream, value) => sum(stream.frames.slice(0, count).map(value)) / count;
  const rows = [
    ["bytes a frame", (f) => f.bits / 8, 0],
    ["kbit/s", null, 1],
    ["QP", (f) => f.qp, 2],
    ["PSNR Y, dB", (f) => f.psnr?.[0], 3],
    ["PSNR all, dB", (f) => f.psnr?.[3], 3],
    ["SSIM", (f) => f.ssim, 5],
    ["intra, %", (f) => (100 * f.intra) / a.mbs, 1],
    ["skip, %", (f) => (100 * f.skip) / a.mbs, 1],
  ];
  const line = (name, x, y, digits) => [
    name,
    decimals(x, digits),
    decimals(y, digits),
    `${y - x >= 0 ? "+" : "−"}${decimals(Math.abs(y - x), digits)}`,
  ];
  const kbps = (stream) => (mean(stream, (f) => f.bits) * stream.fps) / 1000;
  const head = ["", "A", "B", "B − A"],
    has = (value) => !value || (a.frames[0] && value(a.frames[0]) !== undefined && value(b.frames[0]) !== undefined);
  const out = [
    streamTitle(a),
    streamTitle(b),
    element("h2", { textContent: `mean of ${count} frames` }),
    table(
      rows
        .filter(([, value]) => has(value))
        .map(([name, value, digits]) =>
          value ? line(name, mean(a, value), mean(b, value), digits) : line(name, kbps(a), kbps(b), digits),
        ),
      head,
    ),
    element("h2", { textContent: `frame ${n}` }),
    table(
      rows
        .filter(([, value]) => value && has(value))
        .map(([name, value, digits]) => line(name, value(a.frames[n]), value(b.frames[n]), digits)),
      head,
    ),
  ];
  if (a.has.quality && b.has.quality) {
    const points = (stream) => ({
      name: `${"AB"[stream.number]}: ${stream.name}`,
      colour: STREAM_COLOURS[stream.number],
      points: thinned(stream.frames.slice(0, count)).map((f) => [f.bits / 1000, f.psnr[0]]),
      mean: [mean(stream, (f) => f.bits) / 1000, mean(stream, (f) => f.psnr[0])],
    });
    out.push(
      element("h2", { textContent: "rate and quality: frames, and their means" }),
      scatter([points(a), points(b)], "kbit a frame", "PSNR Y, dB"),
    );
  } else
    out.push(
      element("p", {
        className: "soft",
        textContent: "With --source the page also compares PSNR and SSIM, and draws rate and quality.",
      }),
    );
  return out;
}

const thinned = (frames) => frames.filter((_, k) => k % Math.ceil(frames.length / 1500) === 0);
