// Which view is shown, the keys, and what is new in a run that goes on.

const LIVE_SECONDS = 2;

class App {
  constructor() {
    this.live = 'live' in document.body.dataset;
    this.source = this.live ? new LiveSource() : new FileSource();
    this.overview = new Overview(byId('overview'));
    this.turns = new TurnList(byId('turns'));
    this.trajectory = new TrajectoryView(byId('trajectory'), this.source);
    this.back = '#'; // where Escape leads from a turn
    this.scrolls = new Map(); // of each view that was left
    addEventListener('hashchange', () => this.route());
    addEventListener('keydown', (event) => this.key(event));
    byId('help-button').addEventListener('click', () => byId('help').showModal());
    const paint = (scheme) => {
      document.documentElement.style.colorScheme = scheme;
      this.overview.draw();
    };
    addEventListener('beforeprint', () => paint('light'));
    addEventListener('afterprint', () => paint(''));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.overview.draw());
  }

  async start() {
    await this.refresh();
    this.route();
    if (this.live) setInterval(() => this.refresh(), 1000 * LIVE_SECONDS);
  }

  async refresh() {
    if (this.asking) return;
    this.asking = true;
    try {
      const page = await this.source.page();
      if (page) this.update(page);
      if (this.live) this.say(`live, turns: ${this.turns.turns.length.toLocaleString('en')}`);
    } catch (error) {
      this.say(this.live ? `not refreshed: ${error.message}` : `this page can't be read: ${error.message}`);
    }
    this.asking = false;
  }

  say(text) {
    if (byId('state').textContent !== text) byId('state').textContent = text;
  }

  update(page) {
    const first = !this.page;
    this.page = page;
    this.overview.update(page);
    this.turns.update(page);
    if (!first && this.view === 'trajectory') {
      const { run, problem, turn } = this.trajectory;
      this.trajectory.show(page, run, problem, turn.call);
    }
  }

  // `#`, `#turns`, or `#run/problem/call`.
  route() {
    if (!this.page || location.hash === '#main') return;
    const parts = hashParts();
    if (parts.length < 2) this.open(parts[0] === 'turns' ? 'turns' : 'overview');
    else if (this.trajectory.find(this.page, parts[0], parts[1]) >= 0) {
      this.open('trajectory');
      this.trajectory.show(this.page, parts[0], parts[1], parts[2] === '' ? null : Number(parts[2]));
    } else {
      this.open('overview');
      this.say(`there is no turn ${parts.join('/')}`);
    }
  }

  open(view) {
    if (view !== this.view && this.view) this.scrolls.set(this.view, scrollY);
    if (view !== 'trajectory') {
      this.back = location.hash || '#';
      document.title = this.page.title;
    }
    const moved = view !== this.view;
    this.view = view;
    for (const each of ['overview', 'turns', 'trajectory']) byId(each).hidden = each !== view;
    document.querySelectorAll('nav a').forEach((link) => {
      if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    });
    if (!moved) return;
    scrollTo(0, this.scrolls.get(view) ?? 0);
    if (view === 'overview') this.overview.draw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId('help').open) return;
    if (event.key === 'Escape') {
      if (event.target.matches('input, select')) event.target.blur();
      else if (this.view === 'trajectory') location.hash = this.back;
      else if (this.view === 'turns') location.hash = '#';
      return;
    }
    if (event.target.matches('input, select, textarea')) return;
    const action = this.action(event.key);
    if (!action) return;
    event.preventDefault();
    action();
  }

  action(key) {
    const steps = { j: 1, ArrowRight: 1, k: -1, ArrowLeft: -1 }[key];
    const go = (hash) => {
      if (!hash) return;
      history.replaceState(null, '', hash); // so that Back leaves the trajectory, not one turn
      this.route(); // at once: the next key may come before an event would
    };
    if (key === '/') return () => this.focusFilter();
    if (key === '?') return () => byId('help').showModal();
    if (this.view === 'trajectory') {
      if (steps) return () => go(this.trajectory.step(steps));
      if (key === 'n' || key === 'p') return () => go(this.trajectory.stepProblem(key === 'n' ? 1 : -1));
      if (key === 'd') return () => this.trajectory.toggleKernel?.();
    }
    const table = { turns: this.turns.table, overview: this.overview.table }[this.view];
    return steps && key.length === 1 && table ? () => table.step(steps) : null;
  }

  focusFilter() {
    location.hash = '#turns';
    setTimeout(() => this.turns.text.focus());
  }
}

function hashParts() {
  try {
    return location.hash.slice(1).split('/').map(decodeURIComponent);
  } catch {
    return ['']; // not an address of ours
  }
}

new App().start();
