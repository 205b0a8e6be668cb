"use strict";
/* Plotly.js, which the page contains in compressed form, draws the figures. The frame with the machine reports the
   elapsed fraction of the motion, and a cursor in every figure over time shows it. Nothing is loaded from outside. */
const unpacked = async (element) => {
  const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
};

/* Only these buttons of plotly are shown, because another one would send the data to its makers. */
const SETTINGS = {
  responsive: true,
  displaylogo: false,
  plotlyServerURL: "",
  modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
};

const follow = (frame, share) => {
  const scene = frame.closest(".scene");
  const time = Number(scene.dataset.from) + share * (Number(scene.dataset.to) - Number(scene.dataset.from));
  for (const drawing of frame.closest("section").querySelectorAll(".moving .drawing")) {
    const axis = drawing._fullLayout && drawing._fullLayout.xaxis;
    if (!axis) continue;
    let cursor = drawing.querySelector(".cursor");
    if (!cursor) {
      cursor = document.createElement("div");
      cursor.className = "cursor";
      cursor.append(document.createElement("span"));
      drawing.append(cursor);
    }
    const size = drawing._fullLayout._size;
    const place = axis.l2p(time);
    cursor.dataset.time = time;
    cursor.hidden = place < 0 || place > axis._length;
    cursor.style.cssText = `left: ${axis._offset + place}px; top: ${size.t}px; height: ${size.h}px`;
    const unit = axis.title.text.endsWith("[s]") ? " s" : "";
    cursor.firstChild.textContent = time.toPrecision(3) + unit;
  }
};

addEventListener("message", (event) => {
  for (const frame of document.querySelectorAll(".scene iframe")) {
    const share = event.data && event.data.share;
    if (frame.contentWindow === event.source && Number.isFinite(share)) {
      frame.dataset.share = share;
      follow(frame, share);
    }
  }
});

/* All figures over time in a section show the same range: zooming one figure zooms all of them. */
const share_time = (drawing) => {
  let busy = false;
  drawing.on("plotly_relayout", async (change) => {
    const range = change["xaxis.range[0]"] === undefined ? null : [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (busy || drawing.dataset.led || !(range || change["xaxis.autorange"])) return;
    busy = true;
    const wanted = range ? { "xaxis.range": range } : { "xaxis.autorange": true };
    for (const other of drawing.closest("section").querySelectorAll(".moving .drawing")) {
      if (other === drawing) continue;
      other.dataset.led = "1";
      await Plotly.relayout(other, wanted);
      delete other.dataset.led;
    }
    busy = false;
  });
};

const draw = async () => {
  const packed = document.getElementById("plotly");
  if (packed) {
    const script = document.createElement("script");
    script.textContent = await unpacked(packed);
    document.head.append(script);
    packed.remove();
    for (const figure of document.querySelectorAll("figure.plot")) {
      const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
      const drawing = figure.querySelector(".drawing");
      await Plotly.newPlot(drawing, data, layout, SETTINGS);
      if (figure.classList.contains("moving")) share_time(drawing);
    }
  }
  document.documentElement.dataset.drawn = "1";
};

/* Paper is narrower than a screen, and printing does not resize the figures by itself. */
const fit = (width) => {
  for (const drawing of document.querySelectorAll(".js-plotly-plot")) Plotly.relayout(drawing, { width, autosize: !width });
};
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  fit(660);
});
addEventListener("afterprint", () => fit(undefined));

draw();
