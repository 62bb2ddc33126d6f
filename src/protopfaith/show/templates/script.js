"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const tip = document.getElementById("tip");

  const slider = document.getElementById("opacity");
  function setOpacity() {
    root.style.setProperty("--opacity", slider.value / 100);
    document.getElementById("opacity-value").textContent = slider.value + "%";
  }
  if (slider) {
    slider.addEventListener("input", setOpacity);
    setOpacity();
  }
  const hatching = document.getElementById("hatching");
  if (hatching) {
    hatching.addEventListener("change", function () {
      document.body.classList.toggle("no-hatching", !hatching.checked);
    });
  }

  // Label images are stored as runs: player, length, player, length, ...
  const labels = data.labels.map(function (one) {
    const pixels = new Uint32Array(one.width * one.height);
    let at = 0;
    for (let i = 0; i < one.runs.length; i += 2) {
      pixels.fill(one.runs[i], at, at + one.runs[i + 1]);
      at += one.runs[i + 1];
    }
    return { width: one.width, height: one.height, pixels: pixels };
  });

  function signed(value) {
    const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 1 ? 2 : 4;
    return (value > 0 ? "+" : "") + value.toFixed(digits);
  }

  function describe(map, player) {
    const value = map.values[player];
    const error = map.errors[player];
    const known = error !== null;
    let text = "Region " + player + ": " + signed(value) + (known ? " ± " + signed(error).replace("+", "") : "");
    text += " " + map.unit + ". ";
    if (!known) {
      text += "This estimator gives no standard error.";
    } else if (Math.abs(value) < 2 * error) {
      text += "Undecided: within two standard errors of zero.";
    } else {
      text += value > 0 ? map.plus : map.minus;
    }
    return text;
  }

  document.querySelectorAll(".hoverable").forEach(function (picture) {
    const map = data.maps[Number(picture.dataset.map)];
    const regions = labels[map.labels];
    picture.addEventListener("mousemove", function (event) {
      const frame = picture.getBoundingClientRect();
      const x = Math.floor(((event.clientX - frame.left) / frame.width) * regions.width);
      const y = Math.floor(((event.clientY - frame.top) / frame.height) * regions.height);
      if (x < 0 || y < 0 || x >= regions.width || y >= regions.height) {
        return;
      }
      tip.textContent = describe(map, regions.pixels[y * regions.width + x]);
      tip.hidden = false;
      const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
      const above = event.clientY + 18 + tip.offsetHeight > window.innerHeight;
      tip.style.left = left + "px";
      tip.style.top = (above ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + "px";
    });
    picture.addEventListener("mouseleave", function () {
      tip.hidden = true;
    });
  });
})();
