/**
 * The live graph. In: a model with `payload` (a graph payload), `selected` (a node's id) and `closed`
 * (folded groups' ids). Out: a drawing that selects, folds, finds and exports.
 *
 * A plain ES module without imports: it is served as it stands. `visible` and `layout` do the steps of
 * `visible.py` and `layout.py` in the same order, so that both give the same picture.
 */

const SWEEPS = 6;
const FEW_DUMMIES = 600; // how many dummies a group may have
const DUMMIES_PER_MEMBER = 3;
const STUB = 14; // length of a far edge's stub
const GAP = 18;
const LAYER_GAP = 34;
const PADDING = 14;
const TITLE = 20;
const DUMMY = 6;
const TOP = "\ntop"; // a group's borders, as ends of edges
const BOTTOM = "\nbottom";
const HEIGHT = 28;
const MARGIN = 8;
const SVG = "http://www.w3.org/2000/svg";
const COLOURS = {
  input: ["#e8f5e9", "#2e7d32"],
  constant: ["#f1f8e9", "#689f38"],
  result: ["#f3e5f5", "#7b1fa2"],
  equation: ["#e3f2fd", "#1565c0"],
  entry: ["#ede7f6", "#5e35b1"],
  exit: ["#ede7f6", "#5e35b1"],
  folded: ["#ffe0b2", "#ef6c00"],
};
const FRAMES = { kernel: ["#fff8e1", "#ef6c00", "none"], jaxpr: ["#f5f3fb", "#5e35b1", "5 4"] };

// -- what is seen ------------------------------------------------------------------------------

/** The items, open groups and edges that are drawn while the groups `closed` are folded. */
function visible(payload, closed) {
  const groups = new Map(payload.groups.map((g) => [g.id, g]));
  const folded = new Set(closed);
  const shownAs = new Map();
  for (const node of payload.nodes) {
    let shown = node.id;
    for (let p = node.parent; p !== null; p = groups.get(p).parent) if (folded.has(p)) shown = p;
    shownAs.set(node.id, shown);
  }
  const items = new Map();
  for (const node of payload.nodes) {
    const key = shownAs.get(node.id);
    if (items.has(key)) continue;
    const group = groups.get(key);
    const { label, parent } = group ?? node;
    const width = Math.max(46, 7 * [...label].length + 18);
    const kind = group ? "folded" : node.kind;
    items.set(key, { id: key, label, parent, kind, width, height: HEIGHT });
  }
  const edges = new Map();
  for (const [a, b] of payload.edges) {
    const edge = [shownAs.get(a), shownAs.get(b)];
    if (edge[0] !== edge[1]) edges.set(edge.join("\n"), edge);
  }
  const used = new Set();
  for (const item of items.values()) {
    for (let p = item.parent; p !== null; p = groups.get(p).parent) used.add(p);
  }
  const open = payload.groups.filter((g) => used.has(g.id));
  return { items: [...items.values()], groups: open, edges: [...edges.values()], shownAs };
}

// -- layout ------------------------------------------------------------------------------------

/** Boxes and layers by id, and the points of each edge. */
function layout(items, groups, edges) {
  const parent = new Map([...items, ...groups].map((m) => [m.id, m.parent]));
  const members = new Map([[null, []], ...groups.map((g) => [g.id, []])]);
  for (const m of [...items, ...groups]) members.get(m.parent).push(m.id);
  const paths = new Map([...parent.keys()].map((m) => [m, pathOf(m, parent)]));
  const projected = new Map([...members.keys()].map((g) => [g, new Map()]));
  for (const [a, b] of edges) {
    const [home, first, second] = common(paths.get(a), paths.get(b));
    const add = (group, from, to) => projected.get(group).set(edgeKey(from, to), [from, to]);
    if (first !== second) add(home, first, second);
    for (const [group, member] of inside(paths.get(a), home)) add(group, member, BOTTOM);
    for (const [group, member] of inside(paths.get(b), home)) add(group, TOP, member);
  }
  const sizes = new Map(items.map((i) => [i.id, [i.width, i.height]]));
  const levels = new Map();
  for (const g of [...groups].sort((a, b) => paths.get(b.id).length - paths.get(a.id).length)) {
    const level = layLevel(members.get(g.id), [...projected.get(g.id).values()], sizes);
    const title = 7 * [...g.label].length + 2 * PADDING;
    const width = Math.max(level.width + 2 * PADDING, title);
    sizes.set(g.id, [width, level.height + 2 * PADDING + TITLE]);
    levels.set(g.id, level);
  }
  levels.set(null, layLevel(members.get(null), [...projected.get(null).values()], sizes));
  return assemble(members, levels, sizes, paths, edges);
}

const edgeKey = (a, b) => a + "\n" + b;

function pathOf(member, parent) {
  const path = [member];
  for (let p = parent.get(member); p !== null; p = parent.get(p)) path.push(p);
  return path.reverse();
}

function common(a, b) {
  let depth = 0;
  while (depth < a.length - 1 && depth < b.length - 1 && a[depth] === b[depth]) depth += 1;
  return [depth ? a[depth - 1] : null, a[depth], b[depth]];
}

/** The groups on `path` below `home`, outermost first, each with its member on the path. */
function inside(path, home) {
  const start = home === null ? 0 : path.indexOf(home) + 1;
  return path.slice(start, -1).map((group, i) => [group, path[start + 1 + i]]);
}

function layLevel(members, edges, sizes) {
  const layers = layersOf(members, edges.filter(([a, b]) => a !== TOP && b !== BOTTOM));
  const last = Math.max(-1, ...layers.values());
  const bordered = new Map([...layers, [TOP, -1], [BOTTOM, last + 1]]);
  const near = nearEdges(members, edges, bordered);
  const [rows, links, chains] = withDummies(members, near, bordered);
  const width = (m) => (sizes.has(m) ? sizes.get(m)[0] : DUMMY);
  orderRows(rows, links);
  const x = positions(rows, links, width);
  const boxes = new Map();
  const middles = [];
  let y = 0;
  for (const row of rows) {
    const real = row.filter((m) => sizes.has(m));
    const height = Math.max(0, ...real.map((m) => sizes.get(m)[1]));
    middles.push(y + height / 2);
    for (const m of real) {
      const [w, h] = sizes.get(m);
      boxes.set(m, { x: x.get(m), y: y + height / 2, width: w, height: h });
    }
    y += height + LAYER_GAP;
  }
  const routes = new Map();
  for (const [key, [first, chain]] of chains) {
    routes.set(key, chain.map((d, i) => [x.get(d), middles[bordered.get(first) + 1 + i]]));
  }
  const right = Math.max(0, ...rows.flat().map((m) => x.get(m) + width(m) / 2));
  const kept = new Set(near.map(([a, b]) => edgeKey(a, b)));
  const far = new Set(edges.map(([a, b]) => edgeKey(a, b)).filter((key) => !kept.has(key)));
  return { layers, boxes, routes, far, width: right, height: Math.max(y - LAYER_GAP, 0) };
}

function layersOf(members, edges) {
  const before = new Map(members.map((m) => [m, []]));
  const after = new Map(members.map((m) => [m, []]));
  for (const [a, b] of edges) {
    before.get(b).push(a);
    after.get(a).push(b);
  }
  const waiting = new Map(members.map((m) => [m, before.get(m).length]));
  const layers = new Map();
  const ready = members.filter((m) => waiting.get(m) === 0);
  const queued = new Set(ready);
  for (let done = 0; layers.size < members.length; done += 1) {
    if (done === ready.length) {
      ready.push(members.find((m) => !queued.has(m)));
      queued.add(ready[done]);
    }
    const member = ready[done];
    const above = before.get(member).filter((p) => layers.has(p)).map((p) => layers.get(p));
    layers.set(member, 1 + Math.max(-1, ...above));
    for (const reader of after.get(member)) {
      waiting.set(reader, waiting.get(reader) - 1);
      if (waiting.get(reader) === 0 && !queued.has(reader)) {
        ready.push(reader);
        queued.add(reader);
      }
    }
  }
  for (const m of members) {
    if (before.get(m).length || !after.get(m).length) continue;
    layers.set(m, Math.max(0, Math.min(...after.get(m).map((r) => layers.get(r))) - 1));
  }
  return layers;
}

/** The edges that are drawn as lines: the shortest, as far as the dummies go. */
function nearEdges(members, edges, layers) {
  const span = ([a, b]) => layers.get(b) - layers.get(a);
  let left = FEW_DUMMIES + DUMMIES_PER_MEMBER * members.length;
  const near = new Set();
  for (const edge of [...edges].sort((a, b) => span(a) - span(b))) {
    left -= Math.max(span(edge) - 1, 0);
    if (left < 0) break;
    near.add(edge);
  }
  return edges.filter((e) => near.has(e));
}

function withDummies(members, edges, layers) {
  const rows = Array.from({ length: layers.get(BOTTOM) }, () => []);
  for (const m of members) rows[layers.get(m)].push(m);
  const links = [];
  const chains = new Map();
  for (const [a, b] of edges) {
    const chain = [];
    let last = a;
    for (let layer = layers.get(a) + 1; layer < layers.get(b); layer += 1) {
      const dummy = `${a}\n${b}\n${layer}`;
      rows[layer].push(dummy);
      chain.push(dummy);
      if (last !== TOP) links.push([last, dummy]);
      last = dummy;
    }
    if (layers.get(a) < layers.get(b) && last !== TOP && b !== BOTTOM) links.push([last, b]);
    if (chain.length) chains.set(edgeKey(a, b), [a, chain]);
  }
  return [rows, links, chains];
}

function neighbours(links) {
  const above = new Map();
  const below = new Map();
  const push = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));
  for (const [a, b] of links) {
    push(above, b, a);
    push(below, a, b);
  }
  return [above, below];
}

const mean = (xs) => xs.reduce((total, x) => total + x, 0) / xs.length;

function orderRows(rows, links) {
  const [above, below] = neighbours(links);
  const place = new Map();
  for (const row of rows) row.forEach((m, i) => place.set(m, i));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const near = sweep % 2 === 0 ? above : below;
    for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
      const at = (m) => (near.has(m) ? mean(near.get(m).map((n) => place.get(n))) : place.get(m));
      const wanted = new Map(row.map((m) => [m, at(m)]));
      row.sort((a, b) => wanted.get(a) - wanted.get(b));
      row.forEach((m, i) => place.set(m, i));
    }
  }
}

function positions(rows, links, width) {
  const [above, below] = neighbours(links);
  const x = new Map();
  for (const row of rows) {
    let edge = 0;
    for (const m of row) {
      x.set(m, edge + width(m) / 2);
      edge += width(m) + GAP;
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const near = sweep % 2 === 0 ? above : below;
    for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
      const at = (m) => (near.has(m) ? mean(near.get(m).map((n) => x.get(n))) : x.get(m));
      spread(row.map(at), row.map(width)).forEach((value, i) => x.set(row[i], value));
    }
  }
  let left = Infinity;
  for (const [m, value] of x) left = Math.min(left, value - width(m) / 2);
  for (const [m, value] of x) x.set(m, value - left);
  return x;
}

/** The positions nearest to `wanted` (least squares) at which boxes stand apart, in order. */
function spread(wanted, widths) {
  const offsets = [];
  let edge = 0;
  for (const width of widths) {
    offsets.push(edge + width / 2);
    edge += width + GAP;
  }
  const blocks = [];
  wanted.forEach((want, i) => {
    let [middle, count] = [want - offsets[i], 1];
    while (blocks.length && blocks.at(-1)[0] > middle) {
      const [other, size] = blocks.pop();
      middle = (middle * count + other * size) / (count + size);
      count += size;
    }
    blocks.push([middle, count]);
  });
  const means = blocks.flatMap(([middle, count]) => Array(count).fill(middle));
  return means.map((middle, i) => middle + offsets[i]);
}

function assemble(members, levels, sizes, paths, edges) {
  const boxes = new Map();
  const layers = new Map();
  const corners = new Map([[null, [0, 0]]]);
  const depth = (g) => (g === null ? 0 : paths.get(g).length);
  for (const key of [...members.keys()].sort((a, b) => depth(a) - depth(b))) {
    const level = levels.get(key);
    if (key !== null) {
      const box = boxes.get(key);
      corners.set(key, [box.x - level.width / 2, box.y - box.height / 2 + PADDING + TITLE]);
    }
    const [left, top] = corners.get(key);
    for (const [m, layer] of level.layers) layers.set(m, layer);
    for (const m of members.get(key)) {
      const b = level.boxes.get(m);
      boxes.set(m, { ...b, x: left + b.x, y: top + b.y });
    }
  }
  const routes = edges.map(([a, b]) => {
    const [home, first, second] = common(paths.get(a), paths.get(b));
    const [start, end] = [boxes.get(a), boxes.get(b)];
    if (levels.get(home).far.has(edgeKey(first, second))) {
      const tip = end.y - end.height / 2;
      return [a, b, [[end.x - STUB, tip - STUB], [end.x, tip]], true];
    }
    const points = [[start.x, start.y + start.height / 2]];
    const legs = inside(paths.get(a), home).reverse().map(([g, m]) => [g, m, BOTTOM]);
    legs.push([home, first, second], ...inside(paths.get(b), home).map(([g, m]) => [g, TOP, m]));
    for (const [group, above, below] of legs) {
      const [left, top] = corners.get(group);
      const route = levels.get(group).routes.get(edgeKey(above, below)) ?? [];
      for (const [x, y] of route) points.push([left + x, top + y]);
    }
    points.push([end.x, end.y - end.height / 2]);
    return [a, b, points, false];
  });
  const { width, height } = levels.get(null);
  return { boxes, layers, edges: routes, width, height };
}

// -- drawing -----------------------------------------------------------------------------------

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function html(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function curve(points) {
  let [x, y] = points[0];
  let path = `M${x},${y}`;
  for (const [toX, toY] of points.slice(1)) {
    const half = (toY - y) / 2;
    path += `C${x},${y + half} ${toX},${toY - half} ${toX},${toY}`;
    [x, y] = [toX, toY];
  }
  return path;
}

const rect = (box, rx, fill, stroke, more) =>
  svg("rect", {
    x: box.x - box.width / 2,
    y: box.y - box.height / 2,
    width: box.width,
    height: box.height,
    rx,
    fill,
    stroke,
    ...more,
  });

function drawing(payload, closed) {
  const seen = visible(payload, closed);
  const placed = layout(seen.items, seen.groups, seen.edges);
  const [width, height] = [placed.width + 2 * MARGIN, placed.height + 2 * MARGIN];
  const arrow = svg("path", { d: "M0,0L8,4L0,8z", fill: "#777" });
  const shape = { id: "jx-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4 };
  const marker = svg("marker", { ...shape, markerWidth: 7, markerHeight: 7, orient: "auto" }, arrow);
  const root = svg("svg", {
    xmlns: SVG,
    width,
    height,
    viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`,
    role: "group",
    "aria-label": `graph of ${payload.name}`,
    "font-family": "sans-serif",
    "font-size": 12,
  });
  root.append(svg("defs", {}, marker));
  const area = (g) => -placed.boxes.get(g.id).width * placed.boxes.get(g.id).height;
  for (const group of [...seen.groups].sort((a, b) => area(a) - area(b))) {
    root.append(groupElement(group, placed.boxes.get(group.id)));
  }
  const labels = new Map(seen.items.map((i) => [i.id, i.label]));
  for (const [from, , points, far] of placed.edges) {
    const line = { d: curve(points), fill: "none", stroke: "#777", "marker-end": "url(#jx-arrow)" };
    const path = svg("path", far ? { ...line, "stroke-dasharray": "3 2" } : line);
    if (far) path.append(svg("title", {}, `from ${labels.get(from)}`));
    root.append(path);
  }
  for (const group of seen.groups) root.append(groupTitle(group, placed.boxes.get(group.id)));
  for (const item of seen.items) root.append(itemElement(item, placed.boxes.get(item.id)));
  return { root, seen };
}

function groupElement(group, box) {
  const [fill, stroke, dash] = FRAMES[group.kind];
  const about = { "data-group": group.id, tabindex: 0, role: "button", "aria-expanded": "true" };
  const frame = rect(box, 8, fill, stroke, { "stroke-dasharray": dash });
  const hint = svg("title", {}, `${group.reason || group.label} (click to fold)`);
  return svg("g", { ...about, "aria-label": `fold ${group.label}` }, hint, frame);
}

/** A group's name, above the edges that cross it. */
function groupTitle(group, box) {
  const [fill, stroke] = FRAMES[group.kind];
  const at = { x: box.x - box.width / 2 + 8, y: box.y - box.height / 2 + 15, "font-size": 11 };
  const halo = { fill: stroke, stroke: fill, "stroke-width": 4, "paint-order": "stroke" };
  return svg("text", { ...at, ...halo, "pointer-events": "none" }, `▾ ${group.label}`);
}

function itemElement(item, box) {
  const [fill, stroke] = COLOURS[item.kind];
  const at = { x: box.x, y: box.y + 4, "text-anchor": "middle" };
  const about = { "data-node": item.id, tabindex: 0, role: "button", "aria-label": item.label };
  const label = svg("text", at, item.label);
  return svg("g", about, rect(box, 5, fill, stroke, {}), label);
}

// -- the view ----------------------------------------------------------------------------------

const amount = (q) => `${q.value.toLocaleString("en")} ${q.unit} (${q.basis})`;

function detailOf(payload, key) {
  const list = html("dl", { className: "jx-detail" });
  const add = (term, value) => value && list.append(html("dt", {}, term), html("dd", {}, value));
  const node = payload.nodes.find((n) => n.id === key);
  const group = payload.groups.find((g) => g.id === key);
  if (!node && !group) return html("p", {}, "Select a node: click it, or Tab to it and press Enter.");
  const { label, source } = node ?? group;
  add(node ? node.kind : `folded ${group.kind} (double click to open)`, html("b", {}, label));
  for (const v of node?.values ?? []) {
    add(v.name, `shape (${v.shape.join(", ")}), dtype ${v.dtype}, ${amount(v.bytes)}`);
  }
  if (source) add(source.label + (source.made_by ? `, ${source.made_by}` : ""), html("code", {}, source.text));
  if (node) add("equation", html("pre", {}, node.equation));
  add("kernel", node?.kernel_name);
  if (node && !node.kernel) add("recomputed in", node.recomputed_in.join(", "));
  add("why", group?.reason);
  return list;
}

function download(name, type, text) {
  const link = html("a", { href: `data:${type};charset=utf-8,${encodeURIComponent(text)}`, download: name });
  link.click();
}

function render({ model, el }) {
  const payload = model.get("payload");
  el.classList.add("jaxlite");
  el.dataset.testid = "jaxlite-graph";
  el.dataset.state = "loading";
  const picture = html("div", { className: "jx-scroll" });
  const detail = html("div", { className: "jx-details", ariaLive: "polite" });
  const lines = html("ul", { className: "jx-lines" });
  for (const line of payload.lines) {
    const item = html("li", { tabIndex: 0 }, `${line.label}: `, html("code", {}, line.text));
    item.dataset.line = line.key;
    lines.append(item);
  }
  const search = html("input", { type: "search", placeholder: "find by name", ariaLabel: "find by name" });
  const count = html("span", {});
  const button = (label, action) => html("button", { type: "button", onclick: action }, label);
  const groupIds = payload.groups.map((g) => g.id);
  const bar = html("div", { className: "jx-bar" }, html("b", {}, payload.name), search, count);
  const set = (key, value) => {
    model.set(key, value);
    model.save_changes();
  };
  bar.append(
    button("fold all", () => set("closed", groupIds)),
    button("unfold all", () => set("closed", [])),
    button("SVG", () => download("graph.svg", "image/svg+xml", picture.firstChild.outerHTML)),
  );
  const side = html("div", { className: "jx-side" }, detail, html("b", {}, "Your lines"), lines);
  el.replaceChildren(bar, html("div", { className: "jx-live" }, picture, side));

  let shownAs = new Map();
  const inDrawing = (key) => shownAs.get(key) ?? key;

  /** Lights up, in the drawing and the list of lines, what belongs to `test`'s nodes. */
  function light(test) {
    const lit = payload.nodes.filter(test);
    const items = new Set(lit.map((n) => inDrawing(n.id)));
    const keys = new Set(lit.map((n) => n.source?.key));
    for (const g of picture.querySelectorAll("[data-node]")) {
      g.classList.toggle("jx-lit", items.has(g.dataset.node));
    }
    for (const li of lines.children) li.classList.toggle("jx-lit", keys.has(li.dataset.line));
  }

  function mark() {
    const key = model.get("selected");
    for (const g of picture.querySelectorAll("[data-node]")) {
      const on = g.dataset.node === inDrawing(key);
      g.setAttribute("aria-pressed", on);
      g.querySelector("rect").setAttribute("stroke-width", on ? 3 : 1);
    }
    detail.replaceChildren(detailOf(payload, key));
    const node = payload.nodes.find((n) => n.id === key);
    light((n) => n.id === key || (node?.source && n.source?.key === node.source.key));
  }

  function draw() {
    const focus = document.activeElement?.closest?.("[data-node],[data-group]");
    const again = picture.contains(focus) ? focus.dataset.node ?? focus.dataset.group : null;
    const { root, seen } = drawing(payload, model.get("closed"));
    shownAs = seen.shownAs;
    picture.replaceChildren(root);
    mark();
    find();
    if (again) root.querySelector(`[data-node="${again}"],[data-group="${again}"]`)?.focus();
    el.dataset.state = "ready";
  }

  function find() {
    const wanted = search.value.trim().toLowerCase();
    const holds = (n) => `${n.label} ${n.equation}`.toLowerCase().includes(wanted);
    const found = new Set(payload.nodes.filter(holds).map((n) => inDrawing(n.id)));
    for (const g of picture.querySelectorAll("[data-node]")) {
      g.classList.toggle("jx-dim", wanted !== "" && !found.has(g.dataset.node));
    }
    count.textContent = wanted ? `${payload.nodes.filter(holds).length} found` : "";
    return found;
  }

  const isGroup = (key) => groupIds.includes(key);
  const toggle = (key) => {
    const closed = model.get("closed");
    set("closed", closed.includes(key) ? closed.filter((k) => k !== key) : [...closed, key]);
  };
  picture.addEventListener("click", (event) => {
    const g = event.target.closest("[data-node],[data-group]");
    if (g?.dataset.group) toggle(g.dataset.group);
    else if (g) set("selected", g.dataset.node);
  });
  picture.addEventListener("dblclick", (event) => {
    const key = event.target.closest("[data-node]")?.dataset.node;
    if (key && isGroup(key)) toggle(key);
  });
  picture.addEventListener("keydown", (event) => keyPressed(event, picture, set, toggle, isGroup));
  picture.addEventListener("mouseover", (event) => {
    const key = event.target.closest("[data-group]")?.dataset.group;
    if (key) light((n) => n.kernel === key);
    else if (!event.target.closest("[data-node]")) mark();
  });
  const pointed = (event) => event.target.closest("[data-line]")?.dataset.line;
  lines.addEventListener("mouseover", (event) => {
    const key = pointed(event);
    if (key) light((n) => n.source?.key === key);
  });
  lines.addEventListener("mouseleave", mark);
  lines.addEventListener("click", (event) => {
    const node = payload.nodes.find((n) => n.source?.key === pointed(event));
    if (node) set("selected", node.id);
  });
  search.addEventListener("input", find);
  search.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter" && search.value) set("selected", [...find()][0] ?? "");
  });
  model.on("change:selected", mark);
  model.on("change:closed", draw);
  draw();
  return () => {
    model.off("change:selected", mark);
    model.off("change:closed", draw);
  };
}

/** Enter and Space select or fold, arrows walk through the nodes; the notebook does not hear them. */
function keyPressed(event, picture, set, toggle, isGroup) {
  const at = event.target.closest("[data-node],[data-group]");
  if (!at) return;
  const all = [...picture.querySelectorAll("[data-node],[data-group]")];
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  if (step) all[all.indexOf(at) + step]?.focus();
  else if (event.key === "Enter" || event.key === " ") {
    const { node, group } = at.dataset;
    if (group) toggle(group);
    else if (event.key === " " && isGroup(node)) toggle(node);
    else set("selected", node);
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

const widget = { render };
export { layout, visible };
export default widget;
