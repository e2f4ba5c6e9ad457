// The legend below the pictures: colours of what is drawn, scales with units.

function showLegend(app) {
  const { map, layers } = app.state,
    legend = byId("legend"),
    items = [],
    row = MAPS[map];
  const item = (colour, text) => {
    const mark = swatch(colour);
    return element("span", { className: "item" }, mark, text);
  };
  if (map === "type") {
    const used = new Set(app.views.flatMap((view) => (view.arrays ? [...new Set(view.arrays.type)] : [])));
    for (const k of [...used].sort((a, b) => a - b)) items.push(item(css(TYPE_COLOURS[k]), TYPES[k]));
  } else if (map !== "none") {
    items.push(scaleLegend(row, app.range(), (t) => viridis(t)));
    const last = app.views[app.views.length - 1],
      other = last.arrays && app.otherArrays(last);
    if (other) {
      const reach = app.reach(last.arrays, other);
      items.push(scaleLegend({ unit: `B − A, ${row.unit}` }, [-reach, reach], diverging));
    }
  }
  if (layers.has("partitions")) items.push(item("#78c8ff", "inter"), item("#ffb03c", "intra"));
  if (layers.has("transform")) items.push(item("#ff6ed2", "8x8 transform"), item("#78e6b4", "4x4, with levels"));
  if (layers.has("list0"))
    items.push(
      item(REFERENCE_COLOURS[0][0], "list 0, ref_idx 0"),
      item(REFERENCE_COLOURS[0][1], "ref_idx 1"),
      item(REFERENCE_COLOURS[0][2], "ref_idx 2"),
      item(REFERENCE_COLOURS[0][3], "ref_idx 3 and more"),
    );
  if (layers.has("list1"))
    items.push(item(REFERENCE_COLOURS[1][0], "list 1, ref_idx 0"), item(REFERENCE_COLOURS[1][1], "ref_idx 1"));
  if (layers.has("strength"))
    STRENGTH_COLOURS.forEach((colour, k) => items.push(item(colour, `deblocking strength ${k + 1}`)));
  FRAME_TYPES.forEach((name, k) => items.push(item(FRAME_COLOURS[k], `${name} frame`)));
  if (STREAMS.length > 1) items.push(item("#ffffff", "size of stream B"));
  legend.replaceChildren(...items, element("span", { id: "place", textContent: app.placeText ?? "" }));
}

function scaleLegend(row, [least, most], colour) {
  const canvas = element("canvas", { width: 190, height: 1 }),
    context = canvas.getContext("2d");
  for (let x = 0; x < 190; x++) {
    const t = row.root ? Math.sqrt(x / 189) : x / 189;
    context.fillStyle = css(colour(row.flipped ? 1 - t : t));
    context.fillRect(x, 0, 1, 1);
  }
  const text = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(1));
  return element(
    "span",
    { className: "scale" },
    text(least),
    canvas,
    text(most),
    element("span", { className: "soft", textContent: row.unit }),
  );
}
