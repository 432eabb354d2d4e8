// All turns of all runs, filtered and sorted.

const FILTERS = [
  ['run', 'Run', (turn) => turn.run],
  ['status', 'Status', (turn) => STATUSES[turn.turn.status] ?? turn.turn.status],
  ['bottleneck', 'Bottleneck', (turn) => turn.turn.bottleneck.replaceAll('_', ' ') || 'none known'],
];

class TurnList {
  constructor(element) {
    this.text = make('input', { type: 'search', id: 'filter', oninput: () => this.filter() });
    this.best = make('input', { type: 'checkbox', onchange: () => this.filter() });
    this.selects = FILTERS.map(([name]) => make('select', { id: `filter-${name}`, onchange: () => this.filter() }));
    this.count = make('span', { class: 'faint', role: 'status' });
    this.table = turnTable('Turns', true);
    element.append(
      make('h1', {}, 'Turns'),
      make('div', { class: 'controls' },
        labelled('Problem or plan', this.text),
        ...FILTERS.map(([, title], place) => labelled(title, this.selects[place])),
        make('label', {}, this.best, ' best kernels only'), this.count),
      this.table.element);
  }

  update(page) {
    this.turns = page.trajectories.flatMap((trajectory) => turnsOf(page, trajectory));
    FILTERS.forEach(([, , value], place) => {
      const select = this.selects[place];
      const chosen = select.value;
      const values = [...new Set(this.turns.map(value))].sort();
      select.replaceChildren(make('option', { value: '' }, 'all'), ...values.map((each) => make('option', { value: each }, each)));
      select.value = values.includes(chosen) ? chosen : '';
    });
    this.filter();
  }

  filter() {
    const words = this.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = this.turns.filter((each) => {
      const text = `${each.problem} ${each.turn.plan}`.toLowerCase();
      return (!this.best.checked || each.turn.is_best) && words.every((word) => text.includes(word))
        && FILTERS.every(([, , value], place) => ['', value(each)].includes(this.selects[place].value));
    });
    this.count.textContent = `${rows.length.toLocaleString('en')} of ${this.turns.length.toLocaleString('en')}`;
    this.table.setRows(rows);
  }
}

function turnsOf(page, trajectory) {
  const run = page.runs[trajectory.run].name;
  return trajectory.turns.map((turn) => ({ run, problem: trajectory.problem, turn }));
}

function turnKey(each) {
  return turnHash(each.run, each.problem, each.turn.call);
}

function statusNode(turn) {
  return make('span', { class: `status ${turn.status}` }, (STATUSES[turn.status] ?? turn.status) + (turn.is_best ? ' ★' : ''));
}

// `whole`: with the run, the problem and what it took; else the few columns of one trajectory.
function turnTable(caption, whole) {
  const link = (each, text) => make('a', { href: turnKey(each) }, text);
  const columns = [
    ...(whole ? [
      { title: 'problem', width: 270, left: true, value: (each) => each.problem, cell: (each) => link(each, each.problem) },
      { title: 'run', width: 180, left: true, value: (each) => each.run, cell: (each) => each.run },
      { title: 'turn', width: 74, left: true, value: (each) => each.turn.call, cell: (each) => each.turn.place },
    ] : [
      { title: 'turn', width: 80, left: true, value: (each) => each.turn.call, cell: (each) => link(each, each.turn.place) },
    ]),
    { title: 'status', width: 126, left: true, value: (each) => each.turn.status, cell: (each) => statusNode(each.turn) },
    { title: whole ? 'over eager' : 'speedup', width: whole ? 168 : 96, value: (each) => each.turn.speedup,
      cell: ({ turn }) => make('span', { class: turn.verdict || '' }, turn.speedup === null ? ''
        : whole ? speedupWords(turn.speedup, turn.low, turn.high) : `${ratioWords(turn.speedup)}x`) },
    ...(whole ? [
      { title: 'time', width: 80, value: (each) => each.turn.latency_us, cell: (each) => latencyWords(each.turn.latency_us) },
      { title: 'bottleneck', width: 150, left: true, value: (each) => each.turn.bottleneck, cell: (each) => each.turn.bottleneck.replaceAll('_', ' ') },
      { title: 'tokens', width: 76, value: (each) => each.turn.tokens, cell: (each) => each.turn.tokens?.toLocaleString('en') ?? 'unknown' },
      { title: 'cost', width: 64, value: (each) => each.turn.cost_usd, cell: (each) => dollarWords(each.turn.cost_usd) },
      { title: 'wall', width: 64, value: (each) => each.turn.seconds, cell: (each) => secondWords(each.turn.seconds) },
      { title: 'plan', width: 320, left: true, value: (each) => each.turn.plan, cell: (each) => each.turn.plan },
    ] : []),
  ];
  return new VirtualTable(caption, columns, turnKey);
}
