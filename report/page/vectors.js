// How a macroblock is divided: partitions with vectors, transform blocks, intra blocks; positions in luma samples.

const HALF = [
  [0, 0],
  [8, 0],
  [0, 8],
  [8, 8],
];
const SUB_SIZES = [
  [8, 8],
  [8, 4],
  [4, 8],
  [4, 4],
];

// Partitions of an inter macroblock: [x, y, width, height]. Direct ones are as fine as their motion is.
function partitions(arrays, mb) {
  const type = arrays.type[mb];
  if (isIntra(type)) return [];
  if (type === P_16x16 || type === P_SKIP || type === B_16x16) return [[0, 0, 16, 16]];
  if (type === P_16x8 || type === B_16x8)
    return [
      [0, 0, 16, 8],
      [0, 8, 16, 8],
    ];
  if (type === P_8x16 || type === B_8x16)
    return [
      [0, 0, 8, 16],
      [8, 0, 8, 16],
    ];
  const detail = Math.max(arrays.detail[mb] & 3, arrays.detail[mb] >> 2),
    blocks = [];
  if (type === B_SKIP || type === B_DIRECT) {
    if (detail <= 1) return [[0, 0, 16, 16]];
    for (const [x, y] of HALF) divide(blocks, x, y, detail === 3 && !isUniform(arrays, mb, x, y) ? [4, 4] : [8, 8]);
    return blocks;
  }
  HALF.forEach(([x, y], quadrant) => {
    const sub = arrays.sub[arrays.subAt[mb] + quadrant];
    const fine = sub === SUB_DIRECT && detail === 3 && !isUniform(arrays, mb, x, y);
    divide(blocks, x, y, sub === SUB_DIRECT ? (fine ? [4, 4] : [8, 8]) : SUB_SIZES[sub]);
  });
  return blocks;
}

function divide(blocks, x, y, [width, height]) {
  for (let dy = 0; dy < 8; dy += height) for (let dx = 0; dx < 8; dx += width) blocks.push([x + dx, y + dy, width, height]);
}

// Whether the four blocks of a quadrant have one motion.
function isUniform(arrays, mb, x, y) {
  for (let list = 0; list < 2; list++) {
    const first = arrays.vectorOf(mb, list, blockAt(x, y));
    for (const [dx, dy] of [
      [4, 0],
      [0, 4],
      [4, 4],
    ]) {
      const other = arrays.vectorOf(mb, list, blockAt(x + dx, y + dy));
      if (first && (first[0] !== other[0] || first[1] !== other[1])) return false;
    }
  }
  return true;
}

const blockAt = (x, y) => (y >> 2) * 4 + (x >> 2);
const quadrantAt = (x, y) => (y >> 3) * 2 + (x >> 3);

// Intra blocks with a mode of their own: [x, y, size, mode].
function intraBlocks(arrays, mb) {
  const type = arrays.type[mb],
    at = arrays.intraAt[mb];
  if (type === I_16x16) return [[0, 0, 16, arrays.mode16x16(mb)]];
  if (type === I_8x8) return HALF.map(([x, y], k) => [x, y, 8, arrays.intra[at + k]]);
  if (type !== I_4x4) return [];
  return Array.from({ length: 16 }, (_, k) => [4 * (k & 3), 4 * (k >> 2), 4, arrays.intra[at + k]]);
}

// Tables 8-2, 8-3 and 8-4: names; directions of prediction in degrees, clockwise from the right; null: DC and plane.
const MODES_4x4 = [
  "Vertical",
  "Horizontal",
  "DC",
  "Diagonal down left",
  "Diagonal down right",
  "Vertical right",
  "Horizontal down",
  "Vertical left",
  "Horizontal up",
];
const MODES_16x16 = ["Vertical", "Horizontal", "DC", "Plane"];
const MODES_CHROMA = ["DC", "Horizontal", "Vertical", "Plane"];
const ANGLES_4x4 = [90, 0, null, 135, 45, 63.4, 26.6, 116.6, -26.6];
const ANGLES_16x16 = [90, 0, null, null];
