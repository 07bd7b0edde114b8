// Tables: sorted by a click on a heading, rows switched off and on, the rows on show copied as CSV.

function unescaped(text) {
  const area = document.createElement("textarea");
  area.innerHTML = text;
  return area.value;
}

async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { /* a page opened from disk may not be allowed to: the old way is */ }
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}

async function copyAndSay(text, status) {
  status.textContent = await copyText(text) ? "copied" : "this browser does not let the page copy";
}

function sortRows(body, column, descending) {
  const value = (row) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
  };
  const isEmpty = (each) => each === "";
  const rows = [...body.rows].sort((first, second) => {
    const [a, b] = [value(first), value(second)];
    if (isEmpty(a) || isEmpty(b)) return isEmpty(a) - isEmpty(b); // what is missing stays below
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return descending ? -order : order;
  });
  body.append(...rows);
}

function setUpTable(section) {
  const table = section.querySelector("table"), body = table.tBodies[0], status = section.querySelector("[role=status]");
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (button === null) return;
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortRows(body, column, descending);
    });
  });
  const [csvHead, ...csvRows] = unescaped(section.querySelector(".csv").textContent).trimEnd().split("\n");
  const csvOf = new Map([...body.rows].map((row, at) => [row, csvRows[at]]));
  const switches = [...body.querySelectorAll("input[type=checkbox]")];
  for (const each of switches) {
    const row = each.closest("tr");
    each.setAttribute("aria-label", `show ${[...row.querySelectorAll("td.text")].map((cell) => cell.textContent).join(", ")}`);
    each.addEventListener("change", () => row.classList.toggle("off", !each.checked));
  }
  section.querySelector(".all").addEventListener("click", () => {
    for (const each of switches) {
      each.checked = true;
      each.closest("tr").classList.remove("off");
    }
  });
  section.querySelector(".copy").addEventListener("click", async () => {
    const shown = [...body.rows].filter((row) => !row.classList.contains("off"));
    await copyAndSay([csvHead, ...shown.map((row) => csvOf.get(row)), ""].join("\n"), status);
  });
}
