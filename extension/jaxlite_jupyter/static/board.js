/**
 * The live sharding board. In: a model with `payload` (a sharding payload) and `selected` (an operation's number, or -1).
 * Out: the operations, of which one is selected; its values drawn on the mesh, and the collectives that it waits for.
 *
 * A plain ES module without imports: it is served as it stands.
 */

const COLOURS = ["#bbdefb", "#ffe0b2", "#c8e6c9", "#f8bbd0", "#d1c4e9", "#fff9c4", "#b2ebf2", "#d7ccc8"];

/** An element with properties and children. */
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") element.className = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** `1,024 B` or `12.3 µs`, and where the number comes from. */
function amount(quantity) {
  const { value, unit, basis } = quantity;
  if (unit !== "s") return `${value.toLocaleString("en-US")} ${unit} (${basis})`;
  const [scale, name] = value >= 1 ? [1, "s"] : value >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${(value * scale).toPrecision(3)} ${name} (${basis})`;
}

/** The number of the part that each device holds: devices with equal numbers hold the same. */
function partsOf(layout, mesh) {
  const strides = mesh.map((_, d) => mesh.slice(d + 1).reduce((n, a) => n * a.size, 1));
  const devices = mesh.reduce((n, a) => n * a.size, 1);
  const names = layout.flat();
  return Array.from({ length: devices }, (_, device) => {
    let part = 0;
    for (const name of names) {
      const axis = mesh.findIndex((a) => a.name === name);
      part = part * mesh[axis].size + (Math.floor(device / strides[axis]) % mesh[axis].size);
    }
    return part;
  });
}

/** A value on its mesh: a cell for each device, coloured by the part that it holds. */
function valueOnMesh(title, value, mesh) {
  const columns = mesh.length ? mesh[mesh.length - 1].size : 1;
  const cells = partsOf(value.layout, mesh).map((part, device) =>
    make("span", { class: "jx-device", style: `background:${COLOURS[part % COLOURS.length]}`, title: `part ${part}` }, `${device}: ${part}`),
  );
  const grid = make("div", { class: "jx-grid", style: `grid-template-columns:repeat(${columns},auto)` }, ...cells);
  return make("div", { class: "jx-value" }, make("div", {}, `${title} `, make("code", {}, `${value.type} ${value.spec}`)), grid);
}

function render({ model, el }) {
  const root = make("div", { class: "jaxlite", "data-testid": "jaxlite-board" });
  el.append(root);

  function select(number) {
    model.set("selected", model.get("selected") === number ? -1 : number);
    model.save_changes();
  }

  function operation(op, number, chosen, payload) {
    const moved = op.communications.map((n) => payload.communications[n]);
    const bytes = moved.map((c) => `${c.kind} over ${c.axes.join(", ")}: ${amount(c.bytes)}`).join("; ");
    return make(
      "li",
      {
        class: number === chosen ? "jx-lit" : "",
        role: "button",
        tabindex: "0",
        "aria-pressed": String(number === chosen),
        "data-operation": String(number),
        onclick: () => select(number),
        onkeydown: (event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            select(number);
          }
        },
      },
      make("b", {}, op.name),
      ` ${op.results.map((r) => r.spec).join(", ")} `,
      moved.length ? make("span", { class: "jx-moved" }, bytes) : "",
    );
  }

  function detail(op, payload) {
    const parts = [];
    if (op.source) parts.push(make("p", {}, make("span", { class: "jx-at" }, `${op.source.label} `), make("code", {}, op.source.text)));
    op.operands.forEach((value, n) => parts.push(valueOnMesh(`operand ${n}`, value, payload.mesh)));
    op.results.forEach((value, n) => parts.push(valueOnMesh(`result ${n}`, value, payload.mesh)));
    for (const n of op.communications) {
      const c = payload.communications[n];
      const taken = c.seconds ? `, ${amount(c.seconds)}` : "";
      parts.push(make("p", {}, make("b", {}, `${c.kind} over ${c.axes.join(", ")}`), `: ${amount(c.bytes)}${taken}, for ${c.why}`));
    }
    if (op.choice) parts.push(make("p", {}, op.choice));
    return parts;
  }

  function draw() {
    const payload = model.get("payload");
    const chosen = model.get("selected");
    const axes = payload.mesh.map((a) => `${a.name}: ${a.size} (${a.type.toLowerCase()})`).join(", ");
    const head = make(
      "p",
      {},
      make("b", {}, payload.name),
      ` over the mesh ${axes}: each device holds ${amount(payload.held)} at most and receives ${amount(payload.received)}`,
    );
    const list = make("ul", { class: "jx-lines" }, ...payload.operations.map((op, n) => operation(op, n, chosen, payload)));
    const op = payload.operations[chosen];
    const side = make("div", { class: "jx-side", "data-testid": "jaxlite-board-detail" }, ...(op ? detail(op, payload) : []));
    root.replaceChildren(head, make("div", { class: "jx-live" }, list, side));
    root.setAttribute("data-state", "ready");
  }

  model.on("change:payload", draw);
  model.on("change:selected", draw);
  draw();
  return () => {
    model.off("change:payload", draw);
    model.off("change:selected", draw);
  };
}

const widget = { render };
export default widget;
