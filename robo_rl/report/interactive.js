"use strict";
// Beside each drawing is a button that shows the plot in its place, over the whole width; pressed again, the drawing.
for (const button of document.querySelectorAll("button.look-into")) {
  const figure = button.closest("figure"), drawing = figure.querySelector("svg"), plot = figure.querySelector(".plot");
  const words = button.textContent, wide = figure.classList.contains("wide");
  button.hidden = false;
  button.addEventListener("click", async () => {
    const shown = plot.hidden;
    plot.hidden = !shown;
    drawing.style.display = shown ? "none" : "";
    figure.classList.toggle("wide", shown || wide);
    button.setAttribute("aria-pressed", shown);
    button.textContent = shown ? "drawing" : words;
    if (shown && !plot.childElementCount) {
      const ink = getComputedStyle(figure).color.match(/\d+/g).slice(0, 3).map((part) => (+part).toString(16).padStart(2, "0"));
      const told = figure.querySelector("script").textContent.replaceAll("#010203", "#" + ink.join(""));
      await Bokeh.embed.embed_item(JSON.parse(told), plot.id);
    }
  });
}
