// What is drawn over a picture: maps of one value a macroblock, and layers of lines. `drawn` counts what a layer has drawn.

const BITS = { kind: -1 }; // of syntax elements that the map of bits shows; -1: all

const MAPS = {
  none: { name: "none" },
  type: { name: "macroblock type", key: "1" },
  qp: { name: "QP", key: "2", unit: "QP", value: (a, mb) => (a.type[mb] === I_PCM ? NaN : a.qp[mb]) },
  bits: {
    name: "bits",
    key: "3",
    root: true,
    value: (a, mb) => (BITS.kind < 0 ? a.bits[mb] : a.bitsOf(BITS.kind, mb)),
    get unit() {
      return `bits a macroblock${BITS.kind < 0 ? "" : ` of ${META.constants.kinds[BITS.kind]}`}`;
    },
  },
  energy: {
    name: "residual energy",
    key: "4",
    unit: "residual of luma, root mean square",
    root: true,
    value: (a, mb) => a.residual(mb),
  },
  error: {
    name: "error to source",
    key: "5",
    unit: "PSNR of luma, dB",
    needs: "quality",
    flipped: true,
    value: (a, mb) => (a.error[mb] ? Math.min(60, 10 * Math.log10((65025 * 256) / a.error[mb])) : 60),
  },
};
const LAYERS = {
  grid: { name: "macroblock grid", key: "g" },
  slices: { name: "slices", key: "l" },
  partitions: { name: "partitions", key: "p" },
  transform: { name: "transform size", key: "t" },
  modes: { name: "intra modes", key: "m" },
  list0: { name: "vectors, list 0", key: "v" },
  list1: { name: "vectors, list 1", key: "w" },
  skip: { name: "skip", key: "k" },
  strength: { name: "deblocking strength", key: "d" },
};

// Values of a map in a frame: one a macroblock, and the least and the largest.
function mapValues(map, arrays) {
  const values = new Float32Array(arrays.n);
  let least = Infinity,
    most = -Infinity;
  for (let mb = 0; mb < arrays.n; mb++) {
    const value = (values[mb] = MAPS[map].value(arrays, mb));
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return { values, least, most };
}

// A map as an image, one pixel a macroblock. range: [least, most] of the scale; other: arrays whose values are
// subtracted, with `reach` at the ends of the scale.
function mapImage(map, stream, arrays, range, other, reach) {
  const image = new ImageData(stream.mb_width, stream.mb_height),
    pixels = image.data;
  for (let mb = 0; mb < arrays.n; mb++) {
    let colour;
    if (map === "type") colour = TYPE_COLOURS[arrays.type[mb]];
    else {
      const value = MAPS[map].value(arrays, mb);
      if (Number.isNaN(value)) continue;
      colour = other
        ? diverging(0.5 + (value - MAPS[map].value(other, mb)) / (2 * reach))
        : viridis(onScale(map, value, range));
    }
    pixels.set([...colour, 255], 4 * mb);
  }
  return image;
}

function onScale(map, value, [least, most]) {
  const t = most > least ? (value - least) / (most - least) : 0,
    shown = MAPS[map].root ? Math.sqrt(Math.max(t, 0)) : t;
  return MAPS[map].flipped ? 1 - shown : shown;
}

// Draws the layers of a frame. place: {scale, x, y} of the picture on the canvas; shown: macroblocks that are in sight.
function drawLayers(context, layers, stream, n, arrays, place, size) {
  const { scale } = place,
    [left, top] = stream.crop2,
    drawn = {};
  const first = [
    Math.max(0, Math.floor((-place.x / scale + left) / 16)),
    Math.max(0, Math.floor((-place.y / scale + top) / 16)),
  ];
  const last = [
    Math.min(stream.mb_width, Math.ceil(((size[0] - place.x) / scale + left) / 16)),
    Math.min(stream.mb_height, Math.ceil(((size[1] - place.y) / scale + top) / 16)),
  ];
  const each = (act) => {
    for (let y = first[1]; y < last[1]; y++)
      for (let x = first[0]; x < last[0]; x++) {
        act(y * stream.mb_width + x, place.x + (16 * x - left) * scale, place.y + (16 * y - top) * scale);
      }
  };
  context.lineCap = "butt";
  for (const name of Object.keys(LAYERS)) {
    if (layers.has(name)) drawn[name] = DRAW[name](context, each, arrays, scale, stream, n) ?? 0;
  }
  return drawn;
}

// Lines over small pictures are thin and without their dark edges, which would hide the picture.
function stroke(context, path, colour, width, edge = 0) {
  const thin = Math.min(1, Math.max(0.4, PLACE.scale));
  if (edge && PLACE.scale >= 0.9) {
    context.strokeStyle = "rgba(0,0,0,.5)";
    context.lineWidth = width + edge;
    context.stroke(path);
  }
  context.strokeStyle = colour;
  context.lineWidth = width * thin;
  context.globalAlpha = thin < 0.9 ? 0.75 : 1;
  context.stroke(path);
  context.globalAlpha = 1;
}

const line = (path, x1, y1, x2, y2) => {
  path.moveTo(x1, y1);
  path.lineTo(x2, y2);
};

const DRAW = {
  skip(context, each, arrays, scale) {
    let count = 0;
    const path = new Path2D();
    each((mb, x, y) => {
      if (!isSkip(arrays.type[mb])) return;
      count++;
      line(path, x + 3 * scale, y + 13 * scale, x + 13 * scale, y + 3 * scale);
    });
    stroke(context, path, "rgba(205,212,222,.8)", 1.3, 1.5);
    return count;
  },
  grid(context, each, arrays, scale) {
    let count = 0;
    const path = new Path2D();
    each((mb, x, y) => {
      count++;
      path.rect(x, y, 16 * scale, 16 * scale);
    });
    stroke(context, path, "rgba(255,255,255,.22)", 1);
    return count;
  },
  partitions(context, each, arrays, scale) {
    let count = 0;
    const inter = new Path2D(),
      intra = new Path2D();
    each((mb, x, y) => {
      if (isSkip(arrays.type[mb])) return;
      const blocks = isIntra(arrays.type[mb])
        ? intraBlocks(arrays, mb).map(([bx, by, s]) => [bx, by, s, s])
        : partitions(arrays, mb);
      const path = isIntra(arrays.type[mb]) ? intra : inter;
      if (!blocks.length) blocks.push([0, 0, 16, 16]);
      count += blocks.length;
      for (const [bx, by, w, h] of blocks) path.rect(x + bx * scale, y + by * scale, w * scale, h * scale);
    });
    stroke(context, inter, "rgba(120,200,255,.95)", 1, 1.4);
    stroke(context, intra, "rgba(255,176,60,.95)", 1, 1.4);
    return count;
  },
  transform(context, each, arrays, scale) {
    let count = 0;
    const large = new Path2D(),
      small = new Path2D();
    each((mb, x, y) => {
      if (isSkip(arrays.type[mb]) || arrays.type[mb] === I_PCM) return;
      const eight = arrays.transform8x8(mb),
        luma = arrays.cbp[mb] & 15;
      count += eight;
      HALF.forEach(([bx, by], quadrant) => {
        if (!((luma >> quadrant) & 1)) return;
        if (eight) large.rect(x + bx * scale, y + by * scale, 8 * scale, 8 * scale);
        else
          for (const [dx, dy] of [
            [0, 0],
            [4, 0],
            [0, 4],
            [4, 4],
          ]) {
            if ((arrays.coded[mb] >> blockAt(bx + dx, by + dy)) & 1) {
              small.rect(x + (bx + dx) * scale, y + (by + dy) * scale, 4 * scale, 4 * scale);
            }
          }
      });
    });
    context.fillStyle = "rgba(255,255,255,.10)";
    context.fill(large);
    stroke(context, small, "rgba(120,230,180,.75)", 1);
    stroke(context, large, "rgba(255,110,210,.95)", 1.5);
    return count;
  },
  modes(context, each, arrays, scale) {
    let count = 0;
    const path = new Path2D();
    each((mb, x, y) => {
      for (const [bx, by, size, mode] of intraBlocks(arrays, mb)) {
        count++;
        const cx = x + (bx + size / 2) * scale,
          cy = y + (by + size / 2) * scale,
          r = 0.38 * size * scale;
        const angle = (size === 16 ? ANGLES_16x16 : ANGLES_4x4)[mode];
        if (angle === null) {
          path.moveTo(cx + r / 2, cy);
          path.arc(cx, cy, r / 2, 0, 7);
          if (size === 16 && mode === 3) line(path, cx - r / 2, cy + r / 2, cx + r / 2, cy - r / 2);
        } else {
          const dx = r * Math.cos((angle * Math.PI) / 180),
            dy = r * Math.sin((angle * Math.PI) / 180);
          line(path, cx - dx, cy - dy, cx + dx, cy + dy);
        }
      }
    });
    stroke(context, path, "#ffc861", 1.3, 1.6);
    return count;
  },
  list0: (...all) => drawVectors(0, ...all),
  list1: (...all) => drawVectors(1, ...all),
  slices(context, each, arrays, scale, stream) {
    let count = 0;
    const path = new Path2D();
    each((mb, x, y) => {
      const slice = arrays.slice[mb],
        row = mb % stream.mb_width;
      if (row && arrays.slice[mb - 1] !== slice) {
        count++;
        line(path, x, y, x, y + 16 * scale);
      }
      if (mb >= stream.mb_width && arrays.slice[mb - stream.mb_width] !== slice) {
        count++;
        line(path, x, y, x + 16 * scale, y);
      }
    });
    stroke(context, path, "#ff5c7a", 2.5, 2);
    return count;
  },
  strength(context, each, arrays, scale, stream, n) {
    const paths = [1, 2, 3, 4].map(() => new Path2D()),
      strengths = boundaryStrengths(stream, n, arrays);
    let count = 0;
    each((mb, x, y) => {
      for (let edge = 0; edge < 4; edge++)
        for (let k = 0; k < 4; k++) {
          const vertical = strengths[32 * mb + 4 * edge + k],
            horizontal = strengths[32 * mb + 16 + 4 * edge + k];
          const at = 4 * edge * scale,
            to = 4 * k * scale;
          if (vertical) {
            count++;
            line(paths[vertical - 1], x + at, y + to, x + at, y + to + 4 * scale);
          }
          if (horizontal) {
            count++;
            line(paths[horizontal - 1], x + to, y + at, x + to + 4 * scale, y + at);
          }
        }
    });
    paths.forEach((path, k) => stroke(context, path, STRENGTH_COLOURS[k], 0.8 + k * 0.5));
    return count;
  },
};

function drawVectors(list, context, each, arrays, scale, stream, n) {
  const paths = REFERENCE_COLOURS[list].map(() => new Path2D()),
    dots = REFERENCE_COLOURS[list].map(() => new Path2D());
  let count = 0;
  each((mb, x, y) => {
    if (!arrays.detail[mb]) return;
    for (const [bx, by, w, h] of partitions(arrays, mb)) {
      const vector = arrays.vectorOf(mb, list, blockAt(bx, by));
      if (!vector) continue;
      count++;
      const index = Math.min(arrays.reference(mb, list, quadrantAt(bx, by)), paths.length - 1);
      const cx = x + (bx + w / 2) * scale,
        cy = y + (by + h / 2) * scale;
      if (vector[0] || vector[1]) line(paths[index], cx, cy, cx + (vector[0] / 4) * scale, cy + (vector[1] / 4) * scale);
      const r = Math.min(2, 0.4 + 0.7 * scale);
      dots[index].rect(cx - r / 2, cy - r / 2, r, r);
    }
  });
  paths.forEach((path, k) => {
    stroke(context, path, REFERENCE_COLOURS[list][k], 1.2, 1.4);
    context.fillStyle = REFERENCE_COLOURS[list][k];
    context.fill(dots[k]);
  });
  return count;
}
