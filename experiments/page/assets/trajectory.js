// One problem of one run, turn by turn.

class TrajectoryView {
  constructor(element, source) {
    this.source = source;
    this.list = turnTable('Turns of this problem', false);
    this.path = make('p', { class: 'path' });
    this.detail = make('article', { class: 'detail', 'aria-label': 'Turn' });
    this.whole = false; // the whole kernel, not what changed
    this.open = new Set(); // titles of folded sections that were opened
    element.append(this.path, make('div', { class: 'columns' }, this.list.element, this.detail));
  }

  // Place of a trajectory on the page; -1: there is no such.
  find(page, run, problem) {
    return page.trajectories.findIndex((each) => each.problem === problem && page.runs[each.run].name === run);
  }

  // Show a turn; without a call the best one. The view must be in sight, or the list can't scroll.
  show(page, run, problem, call) {
    const place = this.find(page, run, problem);
    const trajectory = page.trajectories[place];
    const turn = trajectory.turns.find((each) => each.call === call)
      ?? trajectory.turns.find((each) => each.is_best) ?? trajectory.turns[0];
    const moved = !this.trajectory || turnHash(run, problem, 0) !== this.where;
    const changed = moved || turn.call !== this.turn.call;
    const news = moved || page !== this.page;
    Object.assign(this, { page, place, trajectory, turn, run, problem, where: turnHash(run, problem, 0) });
    if (news) this.list.setRows(turnsOf(page, trajectory));
    this.list.mark(turnHash(run, problem, turn.call));
    this.path.replaceChildren(...this.pathNodes());
    document.title = `${problem}, ${turn.place} - ${page.title}`;
    if (changed) this.render();
  }

  pathNodes() {
    const other = (steps, text) => {
      const next = this.neighbour(steps);
      return next ? make('a', { href: turnHash(this.page.runs[next.run].name, next.problem, '') }, text) : make('span', { class: 'faint' }, text);
    };
    return [make('b', {}, this.problem), ` in ${this.run} `,
      make('span', { class: 'faint' }, this.page.runs[this.trajectory.run].title), ' ',
      make('span', { class: 'neighbours' }, other(-1, '← problem before'), ' ', other(1, 'next problem →'))];
  }

  neighbour(steps) {
    return this.page.trajectories[this.place + steps];
  }

  // The address `steps` turns on; null at the ends.
  step(steps) {
    const place = this.trajectory.turns.findIndex((each) => each.call === this.turn.call) + steps;
    const next = this.trajectory.turns[place];
    return next ? turnHash(this.run, this.problem, next.call) : null;
  }

  stepProblem(steps) {
    const next = this.neighbour(steps);
    return next ? turnHash(this.page.runs[next.run].name, next.problem, '') : null;
  }

  async render() {
    const { trajectory, place, turn } = this;
    let texts;
    try {
      texts = await this.texts(trajectory, place, turn);
    } catch (error) {
      this.detail.replaceChildren(make('p', { role: 'alert' }, `This turn can't be read: ${error.message}`));
      return;
    }
    if (turn.call !== this.turn.call || place !== this.place) return; // another one was asked for meanwhile
    this.heading = make('h1', { tabindex: '-1' }, `${turn.place[0].toUpperCase()}${turn.place.slice(1)} `, statusNode(turn));
    const { detail } = texts;
    const sections = (wanted) => detail.sections.filter((section) => ['Prompt', 'Answer', 'Reasoning'].includes(section.title) === wanted)
      .map((section) => this.section(section, texts));
    this.detail.replaceChildren(
      this.heading,
      make('p', { class: 'outcome' }, detail.heading),
      ...sections(false),
      this.kernel(texts),
      make('h2', {}, 'Figures'),
      make('dl', { class: 'facts' }, ...detail.facts.map(([label, value]) =>
        make('div', {}, make('dt', {}, label), make('dd', {}, value)))),
      ...sections(true));
    this.detail.scrollTop = 0;
  }

  // The turn's detail, with its own block and those that hold texts it shares with others.
  async texts(trajectory, place, turn) {
    const { page } = this;
    const blockOf = (each, at) => this.source.block(page.runs[each.run].name, each, at);
    const own = await blockOf(trajectory, place);
    const detail = own.turns[turn.call];
    const refs = [detail.kernel, detail.change?.before, ...detail.sections.map((section) => section.text)];
    const homes = [...new Set(refs.filter((ref) => ref && ref.block !== null).map((ref) => ref.block))];
    const blocks = new Map(await Promise.all(homes.map(async (home) =>
      [home, await blockOf(page.trajectories[home], home)])));
    const block = (ref) => (ref.block === null ? own : blocks.get(ref.block));
    return { detail, text: (ref) => block(ref).texts[ref.hash] };
  }

  section(section, texts) {
    if (section.text === null) {
      return make('section', {}, make('h2', {}, section.title), make('p', { class: 'faint' }, section.missing));
    }
    const body = () => make('pre', { tabindex: '0', role: 'region', 'aria-label': section.title }, texts.text(section.text));
    if (!section.folded) return make('section', {}, make('h2', {}, section.title), body());
    const details = make('details', { open: this.open.has(section.title), ontoggle: () => {
      if (details.open) this.open.add(section.title);
      else this.open.delete(section.title);
      if (details.open && !details.querySelector('pre')) details.append(body());
    } }, make('summary', {}, section.title));
    return details;
  }

  kernel(texts) {
    const { detail } = texts;
    const part = make('section', { class: 'kernel' });
    if (detail.kernel === null) {
      part.append(make('h2', {}, 'Kernel'), make('p', { class: 'faint' }, detail.kernel_missing));
      return part;
    }
    const lines = (ref) => texts.text(ref).split('\n');
    const change = detail.change;
    const before = change && this.trajectory.turns.find((each) => each.call === change.before_call).place;
    const draw = () => {
      const whole = this.whole || !change;
      const [diffButton, wholeButton] = [['Diff', false], ['Whole kernel', true]].map(([text, value]) =>
        make('button', { type: 'button', 'aria-pressed': String(whole === value), disabled: !change && !value, onclick: () => {
          this.whole = value;
          draw();
          part.querySelector(`button[aria-pressed="true"]`).focus();
        } }, text));
      const same = change && !change.steps.length;
      part.replaceChildren(
        make('h2', {}, 'Kernel'),
        make('p', { class: 'controls' }, diffButton, wholeButton,
          make('span', { class: 'faint' }, !change ? 'There is no earlier kernel to compare with.'
            : same ? `The same kernel as ${before}.` : `Compared with ${before}.`)),
        whole ? wholeKernel(lines(detail.kernel))
          : kernelDiff(lines(change.before), lines(detail.kernel), change.steps));
    };
    this.toggleKernel = () => {
      this.whole = !this.whole;
      draw();
    };
    draw();
    return part;
  }
}
