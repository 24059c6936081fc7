// Draws the charts so that they fit the screen: hover for numbers, click the legend to
// highlight a protocol, save as SVG or PNG.

// Margin of a chart for its axes and the menu, in px.
const MARGIN = 110;
// Padding of the page and of a folded section, in px.
const FOLDED = 68;
const narrow = window.matchMedia("(max-width: 759px)");

// Stacks panels that are side by side, and sets the width of all plots.
function fit(spec, width) {
  const fitted = { ...spec };
  for (const key of ["hconcat", "vconcat"]) {
    if (fitted[key]) {
      const inner = fitted[key].map((one) => fit(one, width));
      delete fitted[key];
      fitted.vconcat = inner;
    }
  }
  if (fitted.facet?.column) {
    const { column, row } = fitted.facet;
    if (row) width /= column.sort?.length || 2;
    else fitted.facet = { row: column };
  } else if (fitted.facet?.field) fitted.columns = 1;
  if (fitted.spec) fitted.spec = fit(fitted.spec, width);
  else if (fitted.layer || fitted.mark) fitted.width = Math.max(80, Math.round(width));
  return fitted;
}

// Puts the entries of all legends below each other.
function oneColumn(part) {
  if (part === null || typeof part !== "object") return;
  if (part.legend?.columns) part.legend.columns = 1;
  for (const [key, inner] of Object.entries(part)) if (key !== "data" && key !== "values") oneColumn(inner);
}

function draw() {
  for (const figure of document.querySelectorAll("[data-chart]")) {
    // A folded chart has no width yet.
    const room = figure.clientWidth || document.querySelector("main").clientWidth - FOLDED;
    let spec = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
    if (narrow.matches) {
      spec = fit(spec, room - MARGIN);
      spec.config.legend = { ...spec.config.legend, columns: 1 };
      oneColumn(spec);
    } else if (figure.dataset.fit) {
      spec = fit(spec, room - Number(figure.dataset.fit));
    }
    const place = document.createElement("div");
    const actions = { export: true, source: false, compiled: false, editor: false };
    vegaEmbed(place, spec, { renderer: figure.dataset.fit ? "canvas" : "svg", actions }).then(
      () => figure.replaceChildren(place),
      (error) => console.warn(figure.dataset.chart, error),
    );
  }
}

if (window.vegaEmbed) {
  draw();
  narrow.addEventListener("change", draw);
}
