// Replaces the drawings of the charts by interactive ones on wide screens: hover for numbers, click the legend to
// highlight a protocol, save as SVG or PNG.
for (const figure of document.querySelectorAll("[data-chart]")) {
  if (!window.matchMedia("(min-width: 760px)").matches || !window.vegaEmbed) break;
  const spec = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
  const place = document.createElement("div");
  const actions = { export: true, source: false, compiled: false, editor: false };
  vegaEmbed(place, spec, { renderer: "svg", actions }).then(
    () => figure.replaceChildren(place),
    (error) => console.warn(figure.dataset.chart, error),
  );
}
