// Kernels, and what changed from one to another.

const CONTEXT_LINES = 3;

// One line; characters from `begin` to `end` are marked as changed.
function lineNode(line, begin = 0, end = 0) {
  const marked = begin < end ? make('mark', {}, line.slice(begin, end)) : null;
  return make('code', {}, line.slice(0, begin), marked, line.slice(end));
}

function codeRow(kind, before, now, line, begin, end) {
  const sign = { same: ' ', gone: '-', come: '+' }[kind];
  const said = { same: null, gone: 'removed', come: 'added' }[kind];
  return make('tr', { class: kind },
    before === null ? null : make('td', { class: 'at' }, before ? String(before) : ''),
    make('td', { class: 'at' }, now ? String(now) : ''),
    make('td', { class: 'sign' }, said ? make('span', { class: 'unseen' }, said) : null,
      make('span', { 'aria-hidden': 'true' }, sign)),
    make('td', { class: 'line' }, lineNode(line, begin, end)));
}

function codeTable(label, rows) {
  return make('div', { class: 'code', tabindex: '0', role: 'region', 'aria-label': label },
    make('table', {}, make('tbody', {}, ...rows)));
}

function wholeKernel(lines) {
  return codeTable('Kernel', lines.map((line, place) => codeRow('same', null, place + 1, line)));
}

// steps: [begin, end before, begin, end now] of every run of lines that differ.
function kernelDiff(before, now, steps) {
  const rows = [];
  let [atBefore, atNow] = [0, 0];
  const same = (from, to, shift) => {
    for (let place = from; place < to; place += 1) {
      rows.push(codeRow('same', place + shift + 1, place + 1, now[place]));
    }
  };
  const unchanged = (to, first, last) => {
    const shift = atBefore - atNow;
    const head = first ? 0 : CONTEXT_LINES;
    const tail = last ? 0 : CONTEXT_LINES;
    const hidden = to - atNow - head - tail;
    if (hidden < 2) return same(atNow, to, shift);
    same(atNow, atNow + head, shift);
    rows.push(foldedRow(now, atNow + head, to - tail, shift));
    return same(to - tail, to, shift);
  };
  steps.forEach(([beginBefore, endBefore, beginNow, endNow], place) => {
    unchanged(beginNow, place === 0, false);
    const pairs = Math.min(endBefore - beginBefore, endNow - beginNow);
    const marks = Array.from({ length: pairs }, (_, pair) => changedPart(before[beginBefore + pair], now[beginNow + pair]));
    for (let line = beginBefore; line < endBefore; line += 1) {
      const [begin, end] = marks[line - beginBefore] ?? [0, 0];
      rows.push(codeRow('gone', line + 1, 0, before[line], begin, end));
    }
    for (let line = beginNow; line < endNow; line += 1) {
      const [begin, , end] = marks[line - beginNow] ?? [0, 0, 0];
      rows.push(codeRow('come', 0, line + 1, now[line], begin, end));
    }
    [atBefore, atNow] = [endBefore, endNow];
  });
  unchanged(now.length, steps.length === 0, true);
  return codeTable('What changed in the kernel', rows);
}

function foldedRow(lines, from, to, shift) {
  const unfold = () => row.replaceWith(...lines.slice(from, to).map((line, place) =>
    codeRow('same', from + place + shift + 1, from + place + 1, line)));
  const row = make('tr', { class: 'folded' }, make('td', { colspan: 4 },
    make('button', { type: 'button', onclick: unfold }, `${to - from} unchanged lines`)));
  return row;
}

// Where two lines differ: begin, end in the first, end in the second. Nothing for lines that share
// little, where a mark would cover nearly all.
function changedPart(a, b) {
  let begin = 0;
  while (begin < Math.min(a.length, b.length) && a[begin] === b[begin]) begin += 1;
  let tail = 0;
  while (tail < Math.min(a.length, b.length) - begin && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  return begin + tail < 0.4 * Math.max(a.length, b.length) ? [0, 0, 0] : [begin, a.length - tail, b.length - tail];
}
