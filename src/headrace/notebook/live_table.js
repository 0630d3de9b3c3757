// A table that draws itself anew when its rows change; what changed fades from a tint.
function render({ model, el }) {
  let before = new Map();
  const table = document.createElement("table");
  const note = document.createElement("div");
  el.classList.add("headrace-live");
  el.append(table, note);
  function cell(kind, text, number) {
    const made = document.createElement(kind);
    made.textContent = text === null ? "" : typeof text === "number" ? text.toLocaleString("en-US") : String(text);
    if (number) made.style.textAlign = "right";
    return made;
  }
  function draw() {
    const columns = model.get("columns");
    const head = document.createElement("tr");
    head.append(...columns.map((name) => cell("th", name, false)));
    const after = new Map();
    const lines = model.get("rows").map((row) => {
      const line = document.createElement("tr");
      const name = JSON.stringify(model.get("key").map((column) => row[columns.indexOf(column)]));
      const told = JSON.stringify(row);
      after.set(name, told);
      if (before.size && before.get(name) !== told) line.className = "changed";
      line.append(...row.map((value) => cell("td", value, typeof value === "number")));
      return line;
    });
    before = after;
    table.replaceChildren(head, ...lines);
    note.textContent = model.get("note");
  }
  model.on("change:rows", draw);
  model.on("change:note", draw);
  draw();
}
export default { render };
