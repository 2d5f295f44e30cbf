
"use strict";
for (const section of document.querySelectorAll(".searched")) {
  const table = section.querySelector("table");
  const query = section.querySelector("input");
  const status = section.querySelector("[role=status]");
  const body = table.tBodies[0];
  const names = new Intl.Collator("en", { numeric: true });
  // Amounts aren't searched, because a number in a query is the id of a broker or of a partition.
  const words = (row) =>
    Array.from(row.cells, (cell) => ("sort" in cell.dataset ? "" : cell.textContent)).join("  ");
  const rows = Array.from(body.rows, (row) => ({
    row,
    text: words(row).toLowerCase(),
    keys: Array.from(row.cells, (cell) => ("sort" in cell.dataset ? Number(cell.dataset.sort) : cell.textContent)),
  }));

  const search = () => {
    const wanted = query.value.trim().toLowerCase();
    const id = /^\d+$/.test(wanted) && section.id === "moves" ? new RegExp(`(?<!\\d)${wanted}(?!\\d)`) : null;
    let shown = 0;
    for (const { row, text } of rows) {
      row.hidden = !(id ? id.test(text) : text.includes(wanted));
      shown += row.hidden ? 0 : 1;
    }
    status.textContent = `${shown} of ${rows.length} ${status.dataset.rows}`;
  };

  const compare = (a, b) => (typeof a === "number" ? a - b : names.compare(a, b));

  const sort = (header, column) => {
    const numbers = header.classList.contains("number");
    const first = numbers ? "descending" : "ascending";
    const second = numbers ? "ascending" : "descending";
    const way = header.getAttribute("aria-sort") === first ? second : first;
    for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", way);
    const sign = way === "ascending" ? 1 : -1;
    rows.sort((a, b) => sign * compare(a.keys[column], b.keys[column]));
    body.append(...rows.map(({ row }) => row));
  };

  Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    button.addEventListener("click", () => sort(header, column));
    header.replaceChildren(button);
  });
  query.addEventListener("input", search);
  query.parentNode.hidden = false;
  search();
}
