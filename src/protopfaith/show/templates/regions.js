"use strict";
// What the scripts of reports and of the explorer share: where regions lie, and what is said of one.
const regionTools = (function () {
  // Regions are stored as a grid of cells, whose labels are runs: player, length, player, length, ...
  function unpack(one) {
    const columns = one.xs.length - 1;
    const cells = new Uint32Array(columns * (one.ys.length - 1));
    let at = 0;
    for (let i = 0; i < one.runs.length; i += 2) {
      cells.fill(one.runs[i], at, at + one.runs[i + 1]);
      at += one.runs[i + 1];
    }
    return { xs: one.xs, ys: one.ys, columns: columns, rows: one.ys.length - 1, cells: cells };
  }

  // The column (or row) of cells at a share of the picture's width (or height).
  function interval(edges, share) {
    const pixel = share * edges[edges.length - 1];
    let low = 0;
    let high = edges.length - 2;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (edges[middle] <= pixel) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  function signed(value) {
    const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 1 ? 2 : 4;
    return (value > 0 ? "+" : "") + value.toFixed(digits);
  }

  function withError(map, player) {
    const error = map.errors[player];
    return signed(map.values[player]) + (error === null ? "" : " ± " + signed(error).replace("+", ""));
  }

  function describe(map, player, mark) {
    const text = "Region " + player + (mark || "") + ": " + withError(map, player) + " " + map.unit + ". ";
    if (map.errors[player] !== null && !map.decided[player]) {
      return text + "On which side it stands is not clear yet.";
    }
    return text + (map.values[player] > 0 ? map.plus : map.minus);
  }

  return { unpack: unpack, interval: interval, withError: withError, describe: describe };
})();
