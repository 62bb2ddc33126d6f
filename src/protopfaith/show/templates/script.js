"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const tip = document.getElementById("tip");

  const slider = document.getElementById("opacity");
  if (slider) {
    slider.addEventListener("input", function () {
      root.style.setProperty("--opacity", slider.value / 100);
    });
  }
  ["hatching", "gray"].forEach(function (name) {
    const box = document.getElementById(name);
    if (box) {
      box.addEventListener("change", function () {
        document.body.classList.toggle(name, box.checked);
      });
    }
  });

  const { interval, describe } = regionTools;
  const labels = data.labels.map(regionTools.unpack);

  function show(picture, map, regions, column, row, x, y) {
    const player = regions.cells[row * regions.columns + column];
    tip.textContent = describe(map, player);
    tip.hidden = false;
    const left = Math.max(4, Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8));
    const above = y + 18 + tip.offsetHeight > window.innerHeight;
    tip.style.left = left + "px";
    tip.style.top = (above ? y - tip.offsetHeight - 10 : y + 18) + "px";
    picture.querySelectorAll(".cursor").forEach(function (line) {
      line.setAttribute("href", "#r" + map.labels + "-" + player);
    });
  }

  function hide(picture) {
    tip.hidden = true;
    picture.querySelectorAll(".cursor").forEach(function (line) {
      line.removeAttribute("href");
    });
  }

  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  document.querySelectorAll(".pointable").forEach(function (picture) {
    const map = data.maps[Number(picture.dataset.map)];
    const regions = labels[map.labels];
    let column = Math.floor(regions.columns / 2);
    let row = Math.floor(regions.rows / 2);

    picture.addEventListener("mousemove", function (event) {
      const frame = picture.getBoundingClientRect();
      const x = (event.clientX - frame.left) / frame.width;
      const y = (event.clientY - frame.top) / frame.height;
      if (x < 0 || y < 0 || x >= 1 || y >= 1) {
        return;
      }
      column = interval(regions.xs, x);
      row = interval(regions.ys, y);
      show(picture, map, regions, column, row, event.clientX, event.clientY);
    });
    picture.addEventListener("mouseleave", function () {
      hide(picture);
    });

    function point() {
      const frame = picture.getBoundingClientRect();
      const x = (regions.xs[column] + regions.xs[column + 1]) / 2 / regions.xs[regions.columns];
      const y = (regions.ys[row] + regions.ys[row + 1]) / 2 / regions.ys[regions.rows];
      show(picture, map, regions, column, row, frame.left + x * frame.width, frame.top + y * frame.height);
    }
    picture.addEventListener("focus", function () {
      if (picture.matches(":focus-visible")) {
        point();
      }
    });
    picture.addEventListener("blur", function () {
      hide(picture);
    });
    picture.addEventListener("keydown", function (event) {
      const move = moves[event.key];
      if (event.key === "Escape") {
        hide(picture);
      }
      if (!move) {
        return;
      }
      event.preventDefault();
      const here = regions.cells[row * regions.columns + column];
      let next = here;
      let to = [column, row];
      while (next === here) {
        to = [to[0] + move[0], to[1] + move[1]];
        if (to[0] < 0 || to[1] < 0 || to[0] >= regions.columns || to[1] >= regions.rows) {
          return;
        }
        next = regions.cells[to[1] * regions.columns + to[0]];
      }
      column = to[0];
      row = to[1];
      point();
    });
  });

  // A list of cases: what is typed and chosen decides which cards are shown.
  const typed = document.getElementById("filter-text");
  const chosen = document.getElementById("filter-verdict");
  const shown = document.getElementById("filter-count");
  function filter() {
    const words = typed.value.toLowerCase();
    let count = 0;
    document.querySelectorAll(".card").forEach(function (card) {
      const fits = card.dataset.words.toLowerCase().includes(words) && (!chosen.value || card.dataset.verdict === chosen.value);
      card.hidden = !fits;
      count += fits ? 1 : 0;
    });
    shown.textContent = count + " shown";
  }
  if (typed) {
    typed.addEventListener("input", filter);
    chosen.addEventListener("change", filter);
  }

  // On paper nothing can be opened.
  let closed = [];
  window.addEventListener("beforeprint", function () {
    closed = Array.from(document.querySelectorAll("details:not([open])"));
    closed.forEach(function (one) {
      one.open = true;
    });
  });
  window.addEventListener("afterprint", function () {
    closed.forEach(function (one) {
      one.open = false;
    });
  });
})();
