// The first view: answers, figures, curves, and problems by conditions.

class Overview {
  constructor(element) {
    this.element = element;
    this.chosen = { figure: 'speedup_kept', axis: 'calls' };
    this.hidden = new Set(); // labels of conditions that are switched off
    this.curves = new ChartBox('Best so far');
    this.fastP = new ChartBox('fast_p');
    this.findings = make('div', { class: 'findings' });
    this.notes = make('ul', { class: 'notes' });
    this.further = make('div');
    this.circumstances = make('p', { class: 'faint' });
    this.tables = make('div');
    this.runs = make('ul', { class: 'runs' });
    this.figure = make('select', { id: 'figure', onchange: () => this.choose('figure', this.figure) });
    this.axis = make('select', { id: 'axis', onchange: () => this.choose('axis', this.axis) });
    this.toggles = make('fieldset', { class: 'toggles' });
    this.question = make('h1');
    this.made = make('p', { class: 'faint' });
    this.problems = make('div', { class: 'problems' });
    this.pictures = make('div', {},
      make('h2', {}, 'Best so far'),
      make('div', { class: 'controls' },
        labelled('Figure', this.figure), labelled('against', this.axis), this.toggles),
      this.curves.element,
      make('p', { class: 'faint' }, 'Mean over problems; bands are 95 % bootstrap intervals over problems. '
        + 'By the figures of the search: only the last best kernel is judged again.'),
      make('h2', {}, 'fast_p'), this.fastP.element,
      make('p', { class: 'faint' }, 'Share of problems whose best kernel is correct and more than p times as fast as '
        + 'eager. At the left end: correct, however slow.'));
    element.append(
      this.question, this.circumstances, this.findings, this.notes, this.further, this.pictures,
      make('h2', {}, 'Problems by conditions'),
      make('p', { class: 'faint' }, 'Speedup of the best kernel over eager, with its 95 % interval. '
        + 'Each figure leads to the turn that found it.'),
      this.problems,
      this.tables,
      make('h2', {}, 'Runs'), this.runs, this.made);
  }

  update(page) {
    const before = this.page;
    this.page = page;
    this.question.textContent = page.question || page.title;
    this.findings.replaceChildren(...page.findings.map(findingNode));
    this.notes.replaceChildren(...page.notes.map((note) => make('li', {}, note)));
    this.circumstances.textContent = page.circumstances.join('; ');
    this.further.replaceChildren(...Object.entries(page.further).flatMap(([title, found]) => [
      make('h2', {}, title), make('div', { class: 'findings' }, ...found.map(findingNode))]));
    this.made.textContent = `Made ${page.made}.`;
    this.runs.replaceChildren(...page.runs.map((run) =>
      make('li', {}, make('b', {}, run.name), ` ${run.title}; ${run.about}`)));
    this.showTables(page.tables);
    this.pictures.hidden = !page.charts.length;
    this.options(this.figure, 'figure', chartKey, figureName);
    this.options(this.axis, 'axis', (chart) => chart.axis, (chart) => AXIS_NAMES[chart.axis]);
    const labels = page.conditions.map((condition) => condition.label);
    if (!before || JSON.stringify(before.conditions.map((each) => each.label)) !== JSON.stringify(labels)) {
      this.toggles.replaceChildren(make('legend', {}, 'Conditions'), ...page.conditions.map((each) => this.toggle(each)));
      this.table = problemTable(page);
      this.problems.replaceChildren(this.table.element);
    }
    this.table.page = page;
    this.table.setRows(page.problems);
    this.draw();
  }

  options(select, part, key, name) {
    const found = new Map(this.page.charts.filter((chart) => chart.figure !== 'fast_p')
      .map((chart) => [key(chart), name(chart)]));
    select.replaceChildren(...[...found].map(([value, text]) => make('option', { value }, text)));
    if (found.has(this.chosen[part])) select.value = this.chosen[part];
  }

  // Tables that are the same stay as they are, with what a reader has opened.
  showTables(tables) {
    const text = JSON.stringify(tables);
    if (text === this.tablesText) return;
    this.tablesText = text;
    this.tables.replaceChildren(...tables.flatMap((section) => [
      make('h2', {}, section.title),
      ...section.lines.map((line) => make('p', { class: 'faint' }, line)),
      plainTable(section)]));
  }

  choose(part, select) {
    this.chosen[part] = select.value;
    this.draw();
  }

  toggle(condition) {
    const change = (event) => {
      if (event.target.checked) this.hidden.delete(condition.label);
      else this.hidden.add(condition.label);
      this.draw();
    };
    return make('label', { title: condition.note },
      make('input', { type: 'checkbox', checked: !this.hidden.has(condition.label), onchange: change }),
      make('span', { class: `swatch ${condition.dash}`, colour: condition.colour, 'aria-hidden': 'true' }),
      condition.label);
  }

  // Again after a change of theme, too: plotly's colours are not the style sheet's.
  draw() {
    if (!this.page || this.element.hidden) return;
    const { charts, conditions } = this.page;
    const shown = new Set(conditions.keys());
    conditions.forEach((condition, place) => this.hidden.has(condition.label) && shown.delete(place));
    const curve = charts.find((chart) => chartKey(chart) === this.figure.value && chart.axis === this.axis.value);
    const fastP = charts.find((chart) => chart.figure === 'fast_p');
    if (curve) this.curves.draw(curve, conditions, shown);
    if (fastP) this.fastP.draw(fastP, conditions, shown);
  }
}

function figureName(chart) {
  const name = FIGURE_NAMES[chart.figure] ?? chart.label;
  return chart.over ? `${name}: against ${chart.over}` : name;
}

function findingNode(finding) {
  const planned = { true: 'planned', false: 'not planned before the results' }[finding.planned];
  return make('article', { class: finding.settled ? 'finding settled' : 'finding' },
    make('p', { class: 'verdict' }, finding.verdict, planned ? make('span', { class: 'tag' }, planned) : null),
    make('p', {}, finding.sentence),
    make('p', { class: 'faint' }, finding.basis));
}

function plainTable({ title, table }) {
  const side = (column) => (table.left.includes(column) ? 'left' : '');
  return make('div', { class: 'table short', tabindex: '0', role: 'region', 'aria-label': title },
    make('table', {},
      make('thead', {}, make('tr', {}, ...table.heading.map((text, column) =>
        make('th', { scope: 'col', class: side(column) }, text)))),
      make('tbody', {}, ...table.rows.map((row) => make('tr', {}, ...row.map((text, column) =>
        make(column ? 'td' : 'th', { class: side(column), scope: column ? null : 'row' }, text)))))));
}

function problemTable(page) {
  const seeds = Math.max(1, ...page.conditions.map((condition) => condition.runs.length));
  const columns = [
    { title: 'problem', width: 260, left: true, value: (row) => row.problem, cell: (row) => row.problem },
    ...page.conditions.map((condition, place) => ({
      title: condition.label, width: seeds === 1 ? 210 : 70 * seeds + 40,
      value: (row) => meanSpeedup(row.cells[place]),
      cell: (row) => make('span', {}, ...row.cells[place].flatMap((best, turn) =>
        [turn ? ' ' : '', bestNode(table.page, row.problem, best, seeds === 1)])),
    })),
  ];
  const table = new VirtualTable('Problems by conditions', columns, (row) => row.problem);
  table.page = page;
  return table;
}

function bestNode(page, problem, best, interval) {
  const { speedup } = best;
  const text = speedup === null ? (best.correct ? 'correct' : 'no kernel')
    : interval ? speedupWords(speedup.value, speedup.low, speedup.high) : `${ratioWords(speedup.value)}x`;
  return make('a', {
    href: turnHash(page.runs[best.run].name, problem, best.call ?? ''),
    class: best.verdict || 'none',
    title: `${page.runs[best.run].name}: ${best.correct} of ${best.calls} calls correct`
      + (best.call !== null ? `, best at call ${best.call}, ${best.verdict}` : ''),
  }, text);
}

// Geometric mean over seeds, where a failure counts 1; null: no turn.
function meanSpeedup(cell) {
  if (!cell.length) return null;
  const logs = cell.map((best) => (best.speedup ? Math.log(best.speedup.value) : best.correct ? 0 : -1e-9));
  return Math.exp(logs.reduce((a, b) => a + b, 0) / cell.length);
}
