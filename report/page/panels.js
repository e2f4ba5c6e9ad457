// The panels beside the picture that follow the current frame: its macroblock, its facts.

const percent = (share, whole) => `${((100 * share) / (whole || 1)).toFixed(1)} %`;
const decimals = (value, digits = 2) => (value === undefined || value === null ? "" : value.toFixed(digits));
const vectorText = ([x, y]) => `${decimals(x / 4)}, ${decimals(y / 4)}`;

// [name, value] of the syntax of a macroblock; brief: what the tooltip shows.
function macroblockRows(stream, n, arrays, mb, brief = false) {
  const type = arrays.type[mb],
    column = mb % stream.mb_width,
    row = Math.floor(mb / stream.mb_width),
    rows = [];
  rows.push(["address", `${mb}, column ${column}, row ${row}`], ["mb_type", TYPES[type]]);
  if (type !== I_PCM) rows.push(["QP_Y", String(arrays.qp[mb])]);
  rows.push(["bits", String(arrays.bits[mb])]);
  if (!brief) {
    META.constants.kinds.forEach((name, k) => rows.push([`  ${name}`, decimals(arrays.bitsOf(k, mb), 2)]));
  }
  rows.push(["slice", String(arrays.slice[mb])]);
  if (!isSkip(type) && type !== I_PCM) {
    rows.push(["coded_block_pattern", `${arrays.cbp[mb] & 15} luma, ${arrays.cbp[mb] >> 4} chroma`]);
    rows.push(["transform", arrays.transform8x8(mb) ? "8x8" : "4x4"]);
  }
  if (isIntra(type) && type !== I_PCM) {
    if (type === I_16x16) rows.push(["Intra16x16PredMode", MODES_16x16[arrays.mode16x16(mb)]]);
    rows.push(["intra_chroma_pred_mode", MODES_CHROMA[arrays.chromaMode(mb)]]);
  }
  rows.push(["residual, rms of luma", decimals(arrays.residual(mb))]);
  if (arrays.error.length)
    rows.push(["PSNR Y", arrays.error[mb] ? `${decimals(10 * Math.log10((65025 * 256) / arrays.error[mb]))} dB` : "equal"]);
  return rows;
}

// [position, references, vectors] of the partitions of a macroblock.
function motionRows(stream, n, arrays, mb) {
  return partitions(arrays, mb).map(([x, y, w, h]) => {
    const cells = [`${x},${y} ${w}x${h}`];
    for (let list = 0; list < 2; list++) {
      const vector = arrays.vectorOf(mb, list, blockAt(x, y));
      if (!vector) {
        cells.push("", "");
        continue;
      }
      const index = arrays.reference(mb, list, quadrantAt(x, y)),
        to = stream.referred(n, arrays.slice[mb], list, index);
      cells.push(to < 0 ? String(index) : `${index} → ${to}`, vectorText(vector));
    }
    return cells;
  });
}

function macroblockPanel(app) {
  const out = [];
  for (const view of app.views) {
    const { stream, arrays } = view,
      mb = app.state.mb >= 0 ? app.state.mb : app.hovered;
    if (STREAMS.length > 1) out.push(streamTitle(stream));
    if (!arrays || mb < 0 || mb >= arrays.n) {
      out.push(
        element("p", { className: "soft", textContent: "Point at a macroblock to read its syntax; a click keeps it here." }),
      );
      continue;
    }
    out.push(element("h2", { textContent: "macroblock" }), table(macroblockRows(stream, view.n, arrays, mb)));
    const motion = motionRows(stream, view.n, arrays, mb);
    if (motion.length) {
      out.push(
        element("h2", { textContent: "motion, luma samples" }),
        table(motion, ["at, size", "ref 0", "vector 0", "ref 1", "vector 1"]),
      );
    }
    const type = arrays.type[mb];
    if (type === I_4x4 || type === I_8x8) {
      out.push(
        element("h2", { textContent: `${type === I_4x4 ? "Intra4x4" : "Intra8x8"}PredMode` }),
        table(intraBlocks(arrays, mb).map(([x, y, , mode]) => [`${x},${y}`, MODES_4x4[mode] ?? String(mode)])),
      );
    }
  }
  return out;
}

function streamTitle(stream) {
  const mark = swatch(STREAM_COLOURS[stream.number]);
  return element("p", { className: "name" }, mark, element("b", { textContent: `${"AB"[stream.number]}: ${stream.name}` }));
}

// What is known of a frame as [name, value].
function frameRows(stream, n) {
  const frame = stream.frames[n],
    mbs = stream.mbs;
  const rows = [
    ["type", `${FRAME_TYPES[frame.type]}${frame.idr ? ", IDR" : ""}${frame.ref ? "" : ", not a reference"}`],
    ["display order", `${n}, ${decimals(n / stream.fps, 3)} s`],
    ["coding order", String(frame.coded)],
    ["PicOrderCnt, frame_num", `${frame.poc}, ${frame.num}`],
    ["size", `${(frame.bits / 8).toLocaleString("en")} bytes, ${frame.bits.toLocaleString("en")} bits`],
    ["of it in macroblocks", `${frame.mb_bits.toLocaleString("en")} bits`],
    ["QP_Y", `${decimals(frame.qp)} mean, ${frame.qp_least} to ${frame.qp_most}`],
    ["intra, skip", `${percent(frame.intra, mbs)}, ${percent(frame.skip, mbs)} of macroblocks`],
  ];
  if (frame.psnr)
    rows.push(
      [
        "PSNR Y Cb Cr",
        `${frame.psnr
          .slice(0, 3)
          .map((v) => decimals(v))
          .join(", ")} dB`,
      ],
      ["PSNR all, SSIM", `${decimals(frame.psnr[3])} dB, ${decimals(frame.ssim, 5)}`],
    );
  if (frame.buffer)
    rows.push([
      "buffer before, after",
      `${percent(frame.buffer[0], frame.buffer[2])}, ${percent(frame.buffer[1], frame.buffer[2])} of ${short(frame.buffer[2])}bit`,
    ]);
  return rows;
}

function framePanel(app) {
  const out = [];
  for (const view of app.views) {
    const { stream } = view,
      n = Math.min(app.state.n, stream.frames.length - 1),
      frame = stream.frames[n];
    if (STREAMS.length > 1) out.push(streamTitle(stream));
    out.push(element("h2", { textContent: `frame ${n}` }), table(frameRows(stream, n)));
    if (view.arrays && view.n === n) out.push(element("h2", { textContent: "macroblocks" }), typeShares(view.arrays));
    if (frame.lists?.some((slice) => slice.some((list) => list.length))) {
      const name = (k) => (k < 0 ? "–" : String(k));
      out.push(element("h2", { textContent: "reference lists, frames in display order" }));
      const distinct = new Map(frame.lists.map((slice, k) => [JSON.stringify(slice), [k, slice]]));
      for (const [k, slice] of [...distinct.values()].slice(0, 16)) {
        slice.forEach(
          (list, number) =>
            list.length &&
            out.push(
              element("div", {
                textContent: `${distinct.size > 1 ? `slice ${k}, ` : ""}list ${number}: ${list.map(name).join(", ")}`,
              }),
            ),
        );
      }
    }
    out.push(element("h2", { textContent: "slices" }));
    const names = META.constants.slice_columns;
    frame.slices.slice(0, 64).forEach((row, k) => {
      const type = ["P", "B", "I", "SP", "SI"][row[1]];
      out.push(
        element(
          "details",
          { open: frame.slices.length === 1 },
          element("summary", { textContent: `slice ${k}: ${type}, from macroblock ${row[0]}, QP ${row[2]}` }),
          table(names.map((name, c) => [name, c === 1 ? type : String(row[c])])),
        ),
      );
    });
    out.push(
      element("h2", { textContent: "NAL units, bytes" }),
      table(frame.units.map(([name, size]) => [name, size.toLocaleString("en")])),
    );
  }
  return out;
}

function typeShares(arrays) {
  const counts = new Array(TYPES.length).fill(0);
  for (const type of arrays.type) counts[type]++;
  return shares(
    TYPES.map((name, k) => [name, counts[k], css(TYPE_COLOURS[k])]),
    "macroblocks",
  );
}
