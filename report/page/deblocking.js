// The boundary strengths of the deblocking filter (8.7.2.1), from what is known of the macroblocks on both sides of an edge.

const SLICE_DISABLE = META.constants.slice_columns.indexOf("disable_deblocking_filter_idc");

// bS of a frame: uint8, 32 for each macroblock: vertical edges from left to right, then horizontal ones, 4 pieces of each.
function boundaryStrengths(stream, n, arrays) {
  if (arrays.strengths) return arrays.strengths;
  const strengths = (arrays.strengths = new Uint8Array(32 * arrays.n)),
    { lists, slices } = stream.frames[n],
    width = stream.mb_width;
  const coded = Uint16Array.from({ length: arrays.n }, (_, mb) => codedBlocks(arrays, mb));
  const frameOf = (mb, list, block) => {
    const index = arrays.reference(mb, list, (block >> 3) * 2 + ((block >> 1) & 1));
    return index < 0 ? -1 : (lists?.[arrays.slice[mb]]?.[list]?.[index] ?? index);
  };
  for (let mb = 0; mb < arrays.n; mb++) {
    const disabled = slices[arrays.slice[mb]]?.[SLICE_DISABLE];
    if (disabled === 1) continue;
    for (let direction = 0; direction < 2; direction++)
      for (let edge = 0; edge < 4; edge++) {
        if (edge & 1 && arrays.transform8x8(mb)) continue;
        let other = mb;
        if (!edge) {
          if (direction ? mb < width : mb % width === 0) continue;
          other = mb - (direction ? width : 1);
          if (disabled === 2 && arrays.slice[other] !== arrays.slice[mb]) continue;
        }
        for (let k = 0; k < 4; k++) {
          const q = direction ? 4 * edge + k : 4 * k + edge,
            p = edge ? q - (direction ? 4 : 1) : direction ? 12 + k : 4 * k + 3;
          strengths[32 * mb + 16 * direction + 4 * edge + k] =
            isIntra(arrays.type[mb]) || isIntra(arrays.type[other])
              ? edge
                ? 3
                : 4
              : (coded[mb] >> q) & 1 || (coded[other] >> p) & 1
                ? 2
                : edge && arrays.detail[mb] <= 5 && !(arrays.detail[mb] & 2)
                  ? 0 // one vector of each list
                  : Number(movesApart(arrays, frameOf, other, p, mb, q));
        }
      }
  }
  return strengths;
}

// Bit k is set where the transform block with luma block k has levels.
function codedBlocks(arrays, mb) {
  const coded = arrays.coded[mb];
  if (!arrays.transform8x8(mb)) return coded;
  return [0x0033, 0x00cc, 0x3300, 0xcc00].reduce((mask, quadrant) => (coded & quadrant ? mask | quadrant : mask), 0);
}

// Whether two blocks differ in their references, or by a whole sample in a vector.
function movesApart(arrays, frameOf, mbP, p, mbQ, q) {
  const motion = (mb, block) =>
    [0, 1]
      .filter((list) => frameOf(mb, list, block) >= 0 || arrays.vectorOf(mb, list, block))
      .map((list) => [frameOf(mb, list, block), ...arrays.vectorOf(mb, list, block)]);
  const first = motion(mbP, p),
    second = motion(mbQ, q);
  if (first.length !== second.length) return true;
  const fits = (pairs) => pairs.every(([a, b]) => a[0] === b[0]);
  const apart = (pairs) => pairs.some(([a, b]) => Math.abs(a[1] - b[1]) >= 4 || Math.abs(a[2] - b[2]) >= 4);
  const straight = first.map((one, k) => [one, second[k]]),
    crossed = first.map((one, k) => [one, second[second.length - 1 - k]]);
  return [straight, crossed].filter(fits).every(apart);
}
