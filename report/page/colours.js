// Colours: types of frames and macroblocks, and scales. All are told apart with any colour vision.

const VIRIDIS =
  "440154481567482677453781404788 39568c33638d2d708e287d8e238a8d 1f968b20a38729af7f3cbb7555c667 73d05595d840b8de29dce319fde725"
    .replaceAll(" ", "")
    .match(/../g)
    .map((hex) => parseInt(hex, 16));
const DIVERGING = [
  [54, 130, 200],
  [42, 86, 128],
  [40, 44, 50],
  [140, 92, 32],
  [236, 156, 48],
]; // less, equal, more

function mixed(stops, t) {
  const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1),
    k = Math.min(Math.floor(at), stops.length - 2),
    fraction = at - k;
  return stops[k].map((value, c) => Math.round(value + (stops[k + 1][c] - value) * fraction));
}
const STOPS = Array.from({ length: VIRIDIS.length / 3 }, (_, k) => VIRIDIS.slice(3 * k, 3 * k + 3));
const viridis = (t) => mixed(STOPS, t);
const diverging = (t) => mixed(DIVERGING, t);
const css = ([r, g, b], alpha = 1) => (alpha === 1 ? `rgb(${r},${g},${b})` : `rgba(${r},${g},${b},${alpha})`);

const FRAME_COLOURS = ["#e69f00", "#56b4e9", "#3fbf96"]; // I, P, B
const STREAM_COLOURS = ["#6cb2eb", "#e8a33d"];
const TYPE_COLOURS = [
  [240, 160, 20],
  [213, 94, 0],
  [250, 205, 110],
  [230, 60, 120], // I_4x4, I_8x8, I_16x16, I_PCM
  [40, 95, 160],
  [65, 130, 200],
  [90, 155, 225],
  [150, 205, 250],
  [70, 76, 84], // P_16x16 .. P_8x8, P_Skip
  [58, 66, 64],
  [20, 80, 66],
  [20, 115, 90],
  [50, 150, 115],
  [90, 180, 140],
  [160, 225, 190], // B_Skip .. B_8x8
];
const STRENGTH_COLOURS = [0.35, 0.55, 0.78, 1].map((t) => css(viridis(t))); // bS 1 to 4
// Vectors by reference: the nearest one, the next ones, all others.
const REFERENCE_COLOURS = [
  ["#ffe14d", "#ffb14d", "#ff7f50", "#e0e0e0"],
  ["#66e0ff", "#8fa8ff", "#d48bff", "#b0b0b0"],
];
