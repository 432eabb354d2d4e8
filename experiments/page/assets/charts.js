// Charts, drawn by plotly, whose script is unpacked when the first one is wanted.

const AXIS_NAMES = {
  calls: 'calls', tokens: 'tokens', answer_characters: 'characters of answers', cost_usd: 'dollars', seconds_wall: 'wall time',
  seconds_device: 'device time',
};
const FIGURE_NAMES = {
  speedup_kept: 'speedup (a failure counts 1)', fast_1: 'correct and faster than eager',
  fast_0: 'correct',
};
const RATIO_STEPS = [
  [1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1e3, 1e4, 1e5],
  [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
  [0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30],
  [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.2, 2.5, 3],
  Array.from({ length: 61 }, (_, place) => Number((0.8 + place * 0.02).toFixed(2))),
];
const MOST_TICKS = 12; // of an axis

let plotlyReady = null;

function loadPlotly() {
  // The policy of the page allows this very text, by its hash.
  plotlyReady ??= inflate(byId('plotly').textContent).then((text) => {
    // It would add a style for maps, which the policy forbids, unless an element of that name exists.
    const [, id] = text.match(/getElementById\("([0-9a-f]{64})"\)/) ?? [];
    if (id) document.head.append(make('style', { id }));
    const script = make('script');
    script.textContent = text;
    document.head.append(script);
    return window.Plotly;
  });
  return plotlyReady;
}

// Plotly reads a little HTML in its labels; ours has none.
function plain(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

class ChartBox {
  constructor(label) {
    this.plot = make('div', { class: 'plot' });
    this.numbers = make('tbody');
    this.head = make('tr');
    this.element = make('figure', { 'aria-label': label },
      this.plot,
      make('details', {},
        make('summary', {}, 'The same as numbers'),
        make('div', { class: 'table short', tabindex: '0', role: 'region', 'aria-label': `${label}, numbers` },
          make('table', {}, make('thead', {}, this.head), this.numbers))));
  }

  // shown: places of the conditions that are switched on.
  async draw(chart, conditions, shown) {
    const lines = chart.lines.filter((line) => shown.has(line.condition));
    this.writeNumbers(chart, conditions, lines);
    const Plotly = await loadPlotly();
    const traces = lines.flatMap((line) => lineTraces(chart, line, conditions[line.condition], lines.length));
    await Plotly.react(this.plot, traces, chartLayout(chart, lines, this.plot.clientWidth), {
      displaylogo: false, responsive: true,
      modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d'],
    });
    if (chart.unit === 'ratio' && !this.listens) {
      this.listens = true;
      this.plot.on('plotly_relayout', (change) => {
        if (!Object.keys(change).some((name) => name.startsWith('yaxis.range') || name === 'yaxis.autorange')) return;
        const [low, high] = this.plot.layout.yaxis.range;
        const { tickvals, ticktext } = ratioTicks(10 ** low, 10 ** high);
        Plotly.relayout(this.plot, { 'yaxis.tickvals': tickvals, 'yaxis.ticktext': ticktext });
      });
    }
  }

  writeNumbers(chart, conditions, lines) {
    this.head.replaceChildren(...[chart.axis_label, ...lines.map((line) => conditions[line.condition].label)]
      .map((text) => make('th', { scope: 'col' }, text)));
    const most = 12; // rows; the curves are smooth between
    const longest = lines.reduce((a, b) => (b.x.length > a.length ? b.x : a), []);
    const step = Math.max(1, Math.ceil(longest.length / most));
    const rows = [];
    for (let place = 0; place < longest.length; place += step) {
      rows.push(make('tr', {}, make('td', {}, Number(longest[place].toPrecision(4)).toLocaleString('en')),
        ...lines.map((line) => make('td', {}, numberAt(chart, line, longest[place])))));
    }
    this.numbers.replaceChildren(...rows);
  }
}

// A line's value at `x`: that of the last point before.
function numberAt(chart, line, x) {
  let place = -1;
  while (place + 1 < line.x.length && line.x[place + 1] <= x + 1e-9) place += 1;
  if (place < 0 || x > line.x[line.x.length - 1] + 1e-9) return '';
  return valueWords(chart, line, place);
}

function valueWords(chart, line, place) {
  const [value, low, high] = [line.value, line.low, line.high].map((of) => unitWords(of[place], chart.unit));
  return `${value} [${low}, ${high}]`;
}

function chartKey(chart) {
  return chart.over ? `${chart.figure} over ${chart.over}` : chart.figure;
}

function lineTraces(chart, line, condition, count) {
  const steps = chart.axis === 'p';
  const shape = steps ? 'hv' : 'linear';
  const common = { x: line.x, mode: 'lines', line: { width: 0, shape }, hoverinfo: 'skip', showlegend: false };
  // A bound that does not exist is drawn at the line itself.
  const low = line.low.map((bound, place) => bound ?? line.value[place]);
  const high = line.high.map((bound, place) => bound ?? line.value[place]);
  const bands = count > 6 ? [] : [ // more would hide one another
    { ...common, y: low },
    { ...common, y: high, fill: 'tonexty', fillcolor: condition.colour + '26' },
  ];
  const dash = { solid: 'solid', dashed: 'dash', dotted: 'dot', dashdot: 'dashdot' }[condition.dash];
  return [...bands, {
    x: line.x,
    y: line.value,
    text: line.x.map((_, place) => valueWords(chart, line, place)),
    name: plain(condition.label),
    mode: chart.axis === 'calls' ? 'lines+markers' : 'lines',
    line: { color: condition.colour, dash, width: 2.5, shape },
    hovertemplate: '%{text}',
    showlegend: false,
  }];
}

function chartLayout(chart, lines, width) {
  const ink = getComputedStyle(document.body).color;
  const grid = getComputedStyle(byId('main')).borderTopColor;
  const axis = { gridcolor: grid, zeroline: false, linecolor: grid, automargin: true };
  const yaxis = chart.unit === 'share'
    ? { ...axis, tickformat: chart.over ? '+.0%' : '.0%', ...(chart.over ? {} : { range: [-0.02, 1.04] }) }
    : { ...axis, type: 'log', ...ratioRange(lines) };
  const xaxis = {
    ...axis, title: { text: plain(chart.axis_label), standoff: 8 },
    ...(chart.axis === 'p' ? { type: 'log', ...ratioTicks(lines[0]?.x[0] ?? 0.5, lines[0]?.x.at(-1) ?? 2, Math.min(MOST_TICKS, width / 60)) } : {}),
    ...(chart.axis === 'calls' ? { tickformat: 'd', dtick: whole(lines) } : {}),
    ...(chart.axis === 'cost_usd' ? { tickprefix: '$' } : {}),
  };
  const equal = chart.unit === 'share' ? 0 : 1;
  const one = { line: { color: ink, width: 1, dash: 'dash' }, layer: 'below' };
  return {
    xaxis, yaxis, height: 400, hovermode: 'x unified', hoverdistance: -1, uirevision: `${chartKey(chart)} ${chart.axis}`,
    margin: { l: 56, r: 16, t: 12, b: 48 }, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
    font: { color: ink, family: 'system-ui, sans-serif', size: 13 },
    hoverlabel: { bgcolor: getComputedStyle(document.body).backgroundColor, font: { color: ink } },
    shapes: chart.axis === 'p' ? [{ ...one, type: 'line', x0: 1, x1: 1, yref: 'paper', y0: 0, y1: 1 }]
      : chart.over ? [{ ...one, type: 'line', xref: 'paper', x0: 0, x1: 1, y0: equal, y1: equal }] : [],
  };
}

// At most about ten ticks, at whole calls.
function whole(lines) {
  const calls = Math.max(1, ...lines.map((line) => line.x.at(-1)));
  return [1, 2, 5, 10, 20, 50, 100, 200, 500].find((step) => calls / step <= 12) ?? 1000;
}

function ratioRange(lines) {
  const ends = lines.flatMap((line) => [...line.value, ...line.low, ...line.high]).filter((value) => value > 0);
  const low = Math.min(0.97, ...ends) / 1.02;
  const high = Math.max(1.1, ...ends) * 1.03;
  return { range: [Math.log10(low), Math.log10(high)], ...ratioTicks(low, high) };
}

// `0.5x`, `1x`, `2x`: as fine as there is room for.
function ratioTicks(low, high, most = MOST_TICKS) {
  const covers = (steps) => steps[0] <= 1.3 * low && steps.at(-1) >= high / 1.3;
  const ticks = RATIO_STEPS.filter(covers)
    .map((steps) => steps.filter((step) => step >= low && step <= high))
    .filter((steps) => steps.length <= most)
    .reduce((a, b) => (b.length > a.length ? b : a), []);
  return { tickvals: ticks, ticktext: ticks.map((tick) => `${tick}x`) };
}
