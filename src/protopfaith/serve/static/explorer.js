"use strict";
(function () {
  const precisions = [0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01];
  const tip = document.getElementById("tip");
  const trouble = document.getElementById("trouble");

  function complain(text) {
    trouble.textContent = text;
    trouble.hidden = false;
    window.clearTimeout(complain.timer);
    complain.timer = window.setTimeout(function () {
      trouble.hidden = true;
    }, 12000);
  }

  // Every request to the server: the answer's JSON, or one sentence for the person.
  async function ask(path, options) {
    let answer;
    try {
      answer = await fetch(path, Object.assign({ credentials: "same-origin" }, options));
    } catch (error) {
      complain("The server does not answer; is it still running?");
      throw error;
    }
    const said = await answer.json().catch(function () {
      return { error: "The server gave no answer that can be read." };
    });
    if (!answer.ok) {
      complain(said.error || "That did not work.");
      throw new Error(said.error);
    }
    return said;
  }

  function send(path, message) {
    return ask(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(message || {}),
    });
  }

  // The start page: an image from a file, the clipboard, or the gallery.
  const run = document.getElementById("run");
  const drop = document.getElementById("drop");

  async function upload(file) {
    const said = await ask("/ask/file?run=" + encodeURIComponent(run ? run.value : "0"), {
      method: "POST",
      headers: { "Content-Type": "application/octet-stream", "X-File-Name": encodeURIComponent(file.name || "pasted image") },
      body: file,
    });
    window.location.assign(said.url);
  }

  function startPage() {
    const gallery = document.getElementById("gallery");
    const classes = document.getElementById("gallery-class");
    const wrong = document.getElementById("gallery-wrong");
    const more = document.getElementById("gallery-more");
    const count = document.getElementById("gallery-count");
    let next = 0;

    async function load(anew) {
      if (anew) {
        next = 0;
      }
      const query = new URLSearchParams({ run: run.value, label: classes.value, wrong: wrong.checked ? "1" : "", start: String(next) });
      const said = await ask("/gallery?" + query);
      if (anew) {
        gallery.innerHTML = said.html;
      } else {
        gallery.insertAdjacentHTML("beforeend", said.html);
      }
      next = said.next;
      more.hidden = said.next === null;
      count.textContent = said.count;
      document.getElementById("gallery-kind").textContent = said.kind;
      if (classes.options.length === 1) {
        said.classes.forEach(function (name, number) {
          classes.add(new Option(name, number));
        });
      }
    }
    run.addEventListener("change", function () {
      classes.length = 1;
      load(true);
    });
    classes.addEventListener("change", function () {
      load(true);
    });
    wrong.addEventListener("change", function () {
      load(true);
    });
    more.addEventListener("click", function () {
      load(false);
    });
    document.getElementById("file").addEventListener("change", function (event) {
      if (event.target.files.length) {
        upload(event.target.files[0]);
      }
    });
    load(true);
  }

  document.addEventListener("click", async function (event) {
    const thumb = event.target.closest(".gallery .thumb");
    if (thumb) {
      const said = await send("/ask/test", { run: Number(run.value), index: Number(thumb.dataset.index) });
      window.location.assign(said.url);
    }
  });

  ["dragover", "dragleave", "drop"].forEach(function (kind) {
    document.addEventListener(kind, function (event) {
      if (!event.dataTransfer || !Array.from(event.dataTransfer.types).includes("Files")) {
        return;
      }
      event.preventDefault();
      if (drop) {
        drop.classList.toggle("over", kind === "dragover");
      }
      if (kind === "drop" && event.dataTransfer.files.length) {
        upload(event.dataTransfer.files[0]);
      }
    });
  });
  document.addEventListener("paste", function (event) {
    const files = event.clipboardData ? event.clipboardData.files : [];
    if (files.length) {
      event.preventDefault();
      upload(files[0]);
    }
  });

  const { unpack, interval, withError } = regionTools;

  function describe(numbers, player, hidden) {
    let text = regionTools.describe(numbers.maps[0], player, hidden ? ", hidden" : "");
    numbers.prototypes.forEach(function (one) {
      text += "\n" + one.name + ": " + withError(one, player) + (one.decided[player] ? "" : ", not clear yet");
    });
    return text;
  }

  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  // One case on a page: its stream, its map, and what is hidden in it.
  function openCase(article) {
    const address = "/case/" + article.dataset.case;
    const hidden = new Set();
    let numbers = null;
    let regions = null;
    let place = null;
    let stream = null;
    let painting = null;
    let pending = null;

    function part(selector) {
      return article.querySelector(selector);
    }

    function readNumbers() {
      const element = part(".numbers");
      const before = numbers ? numbers.labels[0].runs.length : 0;
      numbers = element ? JSON.parse(element.textContent) : null;
      regions = numbers ? unpack(numbers.labels[0]) : null;
      if (before && numbers && numbers.labels[0].runs.length !== before) {
        forget();
      }
      drawHidden();
    }

    function forget() {
      if (hidden.size && numbers) {
        send(address + "/hide", { regions: [], count: numbers.maps[0].values.length }).catch(function () {});
      }
      hidden.clear();
      place = null;
      part(".whatif-answer").textContent = "";
      part(".show-all").hidden = true;
    }

    function drawHidden() {
      article.querySelectorAll(".offs").forEach(function (one) {
        one.remove();
      });
      const heat = part(".pictures .heat");
      if (!heat || !hidden.size) {
        return;
      }
      article.querySelectorAll(".pictures .picture").forEach(function (picture) {
        const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
        group.setAttribute("class", "offs");
        group.setAttribute("transform", heat.getAttribute("transform"));
        hidden.forEach(function (player) {
          const outline = document.getElementById(numbers.mark + "r" + numbers.maps[0].labels + "-" + player);
          const shape = document.createElementNS("http://www.w3.org/2000/svg", "path");
          shape.setAttribute("d", outline ? outline.getAttribute("d") : "");
          shape.setAttribute("class", "off");
          group.appendChild(shape);
        });
        picture.appendChild(group);
      });
    }

    // Blocks that changed; whoever stood on the map with the keyboard stays there.
    function replace(blocks) {
      Object.keys(blocks).forEach(function (name) {
        const block = part('[data-block="' + name + '"]');
        if (!block) {
          return;
        }
        const focused = block.contains(document.activeElement) && document.activeElement.matches(".pointable");
        const drawing = name === "pictures" && document.activeElement === imagePicture();
        const open = block.querySelector("details[open]") !== null;
        block.innerHTML = blocks[name];
        if (open && block.querySelector("details")) {
          block.querySelector("details").open = true;
        }
        if (name === "pictures") {
          readNumbers();
          showDrawn();
          letDraw(drawing);
        }
        if (focused && block.querySelector(".pointable")) {
          block.querySelector(".pointable").focus({ preventScroll: true });
        }
        if (name === "progress") {
          setStage();
        }
      });
    }

    function setStage() {
      const stage = part(".progress").dataset.stage;
      const heading = part(".progress .heading").textContent;
      if (part(".announce").textContent !== heading) {
        part(".announce").textContent = heading; // read out once, not with every slice
      }
      part(".stop").hidden = stage !== "playing";
      part(".go").hidden = stage !== "stopped";
      article.dataset.stage = stage;
      if (stage === "done" || stage === "failed" || stage === "stopped") {
        close();
      }
    }

    function close() {
      if (stream) {
        stream.close();
        stream = null;
      }
    }

    function listen() {
      close();
      stream = new EventSource(address + "/events");
      stream.addEventListener("blocks", function (event) {
        replace(JSON.parse(event.data));
      });
      stream.addEventListener("gone", function () {
        close();
        complain("This case is no longer kept on the server; ask again.");
      });
    }

    function player(at) {
      return regions.cells[at[1] * regions.columns + at[0]];
    }

    function placeOf(picture, event) {
      const frame = picture.getBoundingClientRect();
      const x = (event.clientX - frame.left) / frame.width;
      const y = (event.clientY - frame.top) / frame.height;
      if (x < 0 || y < 0 || x >= 1 || y >= 1) {
        return null;
      }
      return [interval(regions.xs, x), interval(regions.ys, y)];
    }

    function tell(picture, x, y) {
      const one = player(place);
      tip.textContent = describe(numbers, one, hidden.has(one));
      tip.hidden = false;
      const left = Math.max(4, Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8));
      const above = y + 18 + tip.offsetHeight > window.innerHeight;
      tip.style.left = left + "px";
      tip.style.top = (above ? y - tip.offsetHeight - 10 : y + 18) + "px";
      picture.querySelectorAll(".cursor").forEach(function (line) {
        line.setAttribute("href", "#" + numbers.mark + "r" + numbers.maps[0].labels + "-" + one);
      });
    }

    function tellHere(picture) {
      const frame = picture.getBoundingClientRect();
      const x = (regions.xs[place[0]] + regions.xs[place[0] + 1]) / 2 / regions.xs[regions.columns];
      const y = (regions.ys[place[1]] + regions.ys[place[1] + 1]) / 2 / regions.ys[regions.rows];
      tell(picture, frame.left + x * frame.width, frame.top + y * frame.height);
    }

    function untell() {
      tip.hidden = true;
      article.querySelectorAll(".cursor").forEach(function (line) {
        line.removeAttribute("href");
      });
    }

    function change(one, off) {
      if (hidden.has(one) === off) {
        return;
      }
      if (off) {
        hidden.add(one);
      } else {
        hidden.delete(one);
      }
      drawHidden();
      window.clearTimeout(pending);
      pending = window.setTimeout(whatIf, 60);
    }

    async function whatIf() {
      part(".show-all").hidden = !hidden.size;
      if (!hidden.size) {
        part(".whatif-answer").textContent = "";
        return;
      }
      const asked = Array.from(hidden).sort();
      const said = await send(address + "/hide", { regions: asked, count: numbers.maps[0].values.length });
      if (asked.join() === Array.from(hidden).sort().join()) {
        part(".whatif-answer").innerHTML = said.html;
      }
    }

    article.addEventListener("pointerdown", function (event) {
      const picture = event.target.closest(".pictures .pointable");
      const at = picture && regions && event.button === 0 ? placeOf(picture, event) : null;
      if (at) {
        place = at;
        painting = { off: !hidden.has(player(at)) };
        change(player(at), painting.off);
        if (event.pointerType === "mouse") {
          event.preventDefault();
          picture.focus({ preventScroll: true });
        }
      }
    });
    article.addEventListener("pointermove", function (event) {
      const picture = event.target.closest(".pictures .pointable");
      const at = picture && regions ? placeOf(picture, event) : null;
      if (!at) {
        untell();
        return;
      }
      place = at;
      tell(picture, event.clientX, event.clientY);
      if (painting && event.buttons) {
        change(player(at), painting.off);
      }
    });
    article.addEventListener("pointerleave", untell);
    window.addEventListener("scroll", function () {
      if (!article.querySelector(".pointable:focus-visible")) {
        untell(); // what it tells of has moved away from under the pointer
      }
    }, { passive: true });
    window.addEventListener("pointerup", function () {
      painting = null;
    });
    article.addEventListener("focusin", function (event) {
      if (regions && event.target.matches(".pictures .pointable") && event.target.matches(":focus-visible")) {
        place = place || [Math.floor(regions.columns / 2), Math.floor(regions.rows / 2)];
        tellHere(event.target);
      }
    });
    article.addEventListener("focusout", untell);
    article.addEventListener("keydown", function (event) {
      if (!regions || !event.target.matches(".pictures .pointable")) {
        return;
      }
      if (event.key === "Escape") {
        untell();
      }
      place = place || [0, 0];
      if (event.key === " " || event.key === "Enter") {
        event.preventDefault();
        change(player(place), !hidden.has(player(place)));
        tellHere(event.target);
      }
      const move = moves[event.key];
      if (!move) {
        return;
      }
      event.preventDefault();
      const here = player(place);
      let to = place;
      do {
        to = [to[0] + move[0], to[1] + move[1]];
        if (to[0] < 0 || to[1] < 0 || to[0] >= regions.columns || to[1] >= regions.rows) {
          return;
        }
      } while (player(to) === here);
      place = to;
      tellHere(event.target);
    });

    // Another question about the same image is another case, with an address of its own.
    article.querySelectorAll(".ask").forEach(function (field) {
      field.addEventListener("change", async function () {
        const name = field.dataset.field;
        const number = name === "target" || name === "versus";
        const message = {};
        message[name] = number ? (field.value === "" ? null : Number(field.value)) : field.value;
        if (name === "target") {
          message.versus = null;
        }
        if (name === "versus" && field.value !== "") {
          message.target = Number(part('[data-field="target"]').value);
        }
        field.disabled = true;
        try {
          const said = await send(address + "/change", message);
          window.location.assign(said.url);
        } finally {
          field.disabled = false;
        }
      });
    });
    article.addEventListener("click", async function (event) {
      const button = event.target.closest(".choose-finding");
      if (button) {
        button.disabled = true;
        try {
          const said = await send(address + "/change", { target: Number(button.dataset.finding) });
          window.location.assign(said.url);
        } finally {
          button.disabled = false;
        }
      }
    });
    if (part(".other")) {
      part(".other").addEventListener("change", async function (event) {
        if (event.target.value !== "") {
          const said = await send(address + "/beside", { run: Number(event.target.value) });
          window.location.assign(said.url);
        }
      });
    }

    // Regions drawn by hand: closed lines on the image, as shares of its sides.
    // With the keyboard: a point that arrow keys move, and corners that are set where it stands.
    const drawn = [];
    let line = null;
    let corners = [];
    let point = [0.5, 0.5];

    function isDrawing() {
      return part(".draw").getAttribute("aria-pressed") === "true";
    }

    function imagePicture() {
      return part(".pictures .picture:not(.pointable)");
    }

    function showDrawn() {
      const picture = imagePicture();
      if (!picture) {
        return;
      }
      picture.querySelectorAll(".drawn").forEach(function (one) {
        one.remove();
      });
      const box = picture.viewBox.baseVal;
      drawn.concat(line ? [line] : [], corners.length ? [corners] : []).forEach(function (polygon) {
        const shape = document.createElementNS("http://www.w3.org/2000/svg", "polygon");
        shape.setAttribute("class", "drawn");
        shape.setAttribute(
          "points",
          polygon
            .map(function (corner) {
              return corner[0] * box.width + "," + corner[1] * box.height;
            })
            .join(" "),
        );
        picture.appendChild(shape);
      });
      showPoint(picture, box);
      part(".draw-ask").hidden = !drawn.length;
      part(".draw-forget").hidden = !drawn.length;
    }

    // The point of the keyboard and the corners that are set, as crosses.
    function showPoint(picture, box) {
      picture.querySelectorAll(".drawn-point").forEach(function (one) {
        one.remove();
      });
      const at = isDrawing() && document.activeElement === picture ? corners.concat([point]) : corners;
      at.forEach(function (one) {
        const cross = document.createElementNS("http://www.w3.org/2000/svg", "path");
        const reach = box.width / 40;
        const start = one[0] * box.width + "," + one[1] * box.height;
        const across = "h" + 2 * reach + "m" + -reach + "," + -reach + "v" + 2 * reach;
        cross.setAttribute("class", "drawn-point");
        cross.setAttribute("d", "M" + start + "m" + -reach + ",0" + across);
        picture.appendChild(cross);
      });
    }

    // While regions are drawn the image can be reached with the keyboard.
    function letDraw(focus) {
      const picture = imagePicture();
      if (!picture) {
        return;
      }
      if (isDrawing()) {
        picture.setAttribute("tabindex", "0");
      } else {
        picture.removeAttribute("tabindex");
      }
      if (focus && isDrawing()) {
        picture.focus({ preventScroll: true });
      }
    }

    function sayDrawn(text) {
      part(".draw-said").textContent = text;
    }

    function pointWords() {
      return Math.round(100 * point[0]) + "% from the left, " + Math.round(100 * point[1]) + "% from the top";
    }

    function regionsWords() {
      return drawn.length === 1 ? "1 region is drawn." : drawn.length + " regions are drawn.";
    }

    function drawWithKey(event) {
      const move = moves[event.key];
      if (move) {
        const far = event.shiftKey ? 0.01 : 0.05;
        point = point.map(function (value, i) {
          return Math.min(1, Math.max(0, Math.round(100 * (value + far * move[i])) / 100));
        });
        sayDrawn(pointWords());
      } else if (event.key === " ") {
        corners.push(point);
        sayDrawn("Corner " + corners.length + ": " + pointWords() + ".");
      } else if (event.key === "Backspace" && corners.length) {
        corners.pop();
        sayDrawn("The last corner is taken back; " + corners.length + " are left.");
      } else if (event.key === "Enter" && corners.length < 3) {
        sayDrawn("A region has at least three corners; " + corners.length + " are set.");
      } else if (event.key === "Enter") {
        drawn.push(corners);
        corners = [];
        sayDrawn("The region is closed. " + regionsWords());
      } else if (event.key === "Escape") {
        corners = [];
        sayDrawn("The corners are discarded. " + regionsWords());
      } else {
        return;
      }
      event.preventDefault();
      showDrawn();
    }

    function cornerOf(picture, event) {
      const frame = picture.getBoundingClientRect();
      return [
        Math.min(1, Math.max(0, (event.clientX - frame.left) / frame.width)),
        Math.min(1, Math.max(0, (event.clientY - frame.top) / frame.height)),
      ];
    }
    part(".draw").addEventListener("click", function (event) {
      part(".draw").setAttribute("aria-pressed", String(!isDrawing()));
      part(".draw-help").hidden = !isDrawing();
      article.classList.toggle("drawing-on", isDrawing());
      sayDrawn("");
      if (isDrawing()) {
        imagePicture().scrollIntoView({ block: "center" });
      }
      letDraw(event.detail === 0); // pressed with a key
      showDrawn();
    });
    article.addEventListener("keydown", function (event) {
      if (isDrawing() && event.target === imagePicture()) {
        drawWithKey(event);
      }
    });
    ["focusin", "focusout"].forEach(function (kind) {
      article.addEventListener(kind, function (event) {
        if (isDrawing() && event.target === imagePicture()) {
          window.setTimeout(showDrawn);
        }
      });
    });
    article.addEventListener("pointerdown", function (event) {
      const picture = event.target.closest(".pictures .picture:not(.pointable)");
      if (picture && isDrawing()) {
        event.preventDefault();
        line = [cornerOf(picture, event)];
      }
    });
    article.addEventListener("pointermove", function (event) {
      if (line && line.length < 1500) {
        line.push(cornerOf(imagePicture(), event));
        showDrawn();
      }
    });
    window.addEventListener("pointerup", function () {
      if (line && line.length > 4) {
        drawn.push(line);
      }
      if (line) {
        line = null;
        showDrawn();
      }
    });
    part(".draw-forget").addEventListener("click", function () {
      drawn.length = 0;
      corners = [];
      sayDrawn("No region is drawn.");
      showDrawn();
    });
    part(".draw-ask").addEventListener("click", async function () {
      const said = await send(address + "/change", { drawn: drawn });
      window.location.assign(said.url);
    });

    // Longer work: the button says so while it lasts.
    async function longer(button, place, path, message, done) {
      button.disabled = true;
      place.textContent = "One moment; the network takes turns.";
      try {
        const said = await send(address + path, message);
        place.innerHTML = said.html;
        if (done) {
          done();
        }
      } catch (error) {
        place.textContent = "";
      } finally {
        button.disabled = false;
      }
    }
    article.addEventListener("click", function (event) {
      const button = event.target.closest(".card-open");
      if (button) {
        const panel = part(".portrait-panel");
        panel.showModal();
        longer(button, part(".portrait-answer"), "/prototype", { prototype: Number(button.dataset.prototype) });
      }
    });
    part(".compare-go").addEventListener("click", function (event) {
      const names = Array.from(article.querySelectorAll(".compare-name:checked")).map(function (one) {
        return one.value;
      });
      longer(event.target, part(".compare-answer"), "/compare", {
        prototype: Number(part(".compare-prototype").value),
        explainers: names,
      });
    });
    part(".save-go").addEventListener("click", function (event) {
      longer(event.target, part(".save-answer"), "/save", {});
    });

    part(".show-all").addEventListener("click", function () {
      forget();
      drawHidden();
    });
    part(".stop").addEventListener("click", async function () {
      await send(address + "/stop");
    });
    async function goOn() {
      await send(address + "/continue", { precision: precisions[Number(part(".precision").value)] });
      listen();
    }
    part(".go").addEventListener("click", goOn);
    part(".precision").addEventListener("input", function (event) {
      part(".precision-text").textContent = "±" + Math.round(100 * precisions[Number(event.target.value)]) + "%";
    });
    part(".precision").addEventListener("change", goOn);

    readNumbers();
    JSON.parse(article.dataset.hidden || "[]").forEach(function (one) {
      if (numbers) {
        hidden.add(one);
      }
    });
    if (hidden.size) {
      drawHidden();
      whatIf();
    }
    setStage();
    if (["waiting", "playing"].includes(article.dataset.stage)) {
      listen();
    }
    window.addEventListener("pagehide", close);
    window.addEventListener("pageshow", function (event) {
      if (event.persisted && ["waiting", "playing"].includes(article.dataset.stage)) {
        listen();
      }
    });
  }

  if (document.getElementById("gallery")) {
    startPage();
  }
  document.querySelectorAll(".case").forEach(openCase);

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
