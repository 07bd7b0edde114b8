// Puts the page together once it is there.

const content = JSON.parse(document.getElementById("content").textContent);
const lineStyle = palette(content.colours);

document.querySelectorAll("section.table").forEach(setUpTable);
document.querySelectorAll(".copy-commands").forEach((button) => {
  const listing = document.getElementById("commands").textContent;
  button.addEventListener("click", () => copyAndSay(listing, button.parentElement.querySelector("[role=status]")));
});

if (content.training.length) {
  const section = document.getElementById("training");
  section.hidden = false;
  const lines = content.training.map((run) => ({ ...run, ...lineStyle(run.row) }));
  const rows = [...new Set(content.training.map((run) => run.row))];
  const chart = document.createElement("div");
  section.querySelector(".charts").append(chart);
  drawChart(chart, { title: "validation score", xLabel: "seconds", lines });
  section.append(legend(rows.map((name) => ({ name, ...lineStyle(name) }))));
}

content.viewers.forEach((viewer, at) => {
  const section = document.createElement("section");
  section.className = "viewer";
  document.getElementById("viewers").append(section);
  setUpViewer(section, viewer, at);
});
document.documentElement.dataset.ready = "true";
