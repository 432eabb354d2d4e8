// A sortable table of any length: only the rows in sight are in the document.

const ROW_HEIGHT = 30; // px, as in page.css
const SPARE_ROWS = 8; // above and below what is in sight
const PRINTED_ROWS = 2000;

class VirtualTable {
  // columns: {title, width (px), value(row) to sort by, cell(row) -> text or node, left}
  // key(row): a text that names the row for good.
  constructor(caption, columns, key) {
    this.columns = columns;
    this.key = key;
    this.rows = [];
    this.drawn = new Map();
    this.sorted = null;
    this.current = null;
    this.buttons = columns.map((column) =>
      make('button', { type: 'button', onclick: () => this.sort(column) }, column.title));
    this.heads = columns.map((column, place) =>
      make('th', { scope: 'col', class: column.left ? 'left' : '' }, this.buttons[place]));
    this.body = make('tbody');
    this.above = make('tr', { class: 'spacer', 'aria-hidden': 'true' });
    this.below = make('tr', { class: 'spacer', 'aria-hidden': 'true' });
    this.table = make('table', {},
      make('caption', { class: 'unseen' }, caption),
      make('colgroup', {}, ...columns.map((column) => {
        const col = make('col');
        col.style.width = `${column.width}px`;
        return col;
      })),
      make('thead', {}, make('tr', {}, ...this.heads)),
      this.body);
    this.table.style.minWidth = `${columns.reduce((sum, column) => sum + column.width, 0)}px`;
    this.element = make('div', { class: 'table', tabindex: '0', role: 'region', 'aria-label': caption,
      onscroll: () => this.draw() }, this.table);
    new ResizeObserver(() => this.draw()).observe(this.element);
    addEventListener('beforeprint', () => this.draw(true));
    addEventListener('afterprint', () => this.draw());
  }

  // Other rows; what is in sight stays in sight.
  setRows(rows) {
    const top = Math.floor(this.element.scrollTop / ROW_HEIGHT);
    const anchor = top > 0 && this.rows[top] ? this.key(this.rows[top]) : null;
    const into = this.element.scrollTop - top * ROW_HEIGHT;
    const focused = this.focused();
    this.given = rows;
    this.rows = this.inOrder(rows);
    this.drawn.forEach((row) => row.remove());
    this.drawn.clear();
    this.table.setAttribute('aria-rowcount', rows.length + 1);
    this.draw();
    const place = anchor === null ? -1 : this.rows.findIndex((row) => this.key(row) === anchor);
    if (place >= 0) this.element.scrollTop = place * ROW_HEIGHT + into;
    this.draw();
    this.drawn.get(focused)?.querySelector('a')?.focus({ preventScroll: true });
  }

  // Key of the row that holds the focus.
  focused() {
    return [...this.drawn].find(([, row]) => row.contains(document.activeElement))?.[0];
  }

  sort(column) {
    const down = this.sorted && this.sorted.column === column ? !this.sorted.down : !column.left;
    this.sorted = { column, down };
    this.heads.forEach((head, place) => {
      const here = this.columns[place] === column;
      if (here) head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    this.element.scrollTop = 0;
    this.setRows(this.given);
  }

  inOrder(rows) {
    if (!this.sorted) return rows;
    const { column, down } = this.sorted;
    const absent = (value) => value === null || value === undefined || value === '';
    return rows.map((row) => [column.value(row), row]).sort(([a], [b]) => {
      if (absent(a) || absent(b)) return absent(a) - absent(b); // last, in both directions
      const order = typeof a === 'string' ? a.localeCompare(b, 'en', { numeric: true }) : a - b;
      return down ? -order : order;
    }).map(([, row]) => row);
  }

  draw(all = false) {
    const height = this.element.clientHeight;
    if (!height && !all) return;
    const top = this.element.scrollTop;
    const first = all ? 0 : Math.max(0, Math.floor(top / ROW_HEIGHT) - SPARE_ROWS);
    const wanted = all ? PRINTED_ROWS : Math.ceil(height / ROW_HEIGHT) + 2 * SPARE_ROWS;
    const last = Math.min(this.rows.length, first + wanted);
    const keys = this.rows.slice(first, last).map(this.key);
    const kept = new Set(keys);
    for (const [key, row] of this.drawn) {
      if (kept.has(key)) continue;
      row.remove();
      this.drawn.delete(key);
    }
    this.spacer(this.above, first);
    this.spacer(this.below, this.rows.length - last);
    // Rows that stay are not touched, so that focus and selection survive.
    let before = null;
    keys.forEach((key, place) => {
      let row = this.drawn.get(key);
      if (!row) {
        row = this.row(this.rows[first + place], first + place, key);
        this.drawn.set(key, row);
        if (before) before.after(row);
        else this.body.prepend(row);
      }
      before = row;
    });
    this.body.prepend(this.above);
    this.body.append(this.below);
  }

  spacer(row, rows) {
    row.style.height = `${rows * ROW_HEIGHT}px`;
    row.hidden = rows === 0;
  }

  row(row, place, key) {
    const cells = this.columns.map((column) =>
      {
      const value = column.left ? column.value(row) : null;
      return make('td', { class: column.left ? 'left' : null, title: typeof value === 'string' ? value : null },
        column.cell(row));
    });
    return make('tr', { 'aria-rowindex': place + 2, class: key === this.current ? 'current' : '' },
      ...cells);
  }

  // The row `steps` further than the one that holds the focus, or that is marked.
  step(steps) {
    const here = this.focused() ?? this.current;
    const from = this.rows.findIndex((row) => this.key(row) === here);
    this.show(Math.min(Math.max(from + steps, 0), this.rows.length - 1), true);
  }

  // Mark a row and bring it into sight.
  mark(key) {
    this.current = key;
    this.drawn.forEach((row, each) => row.classList.toggle('current', each === key));
    const place = this.rows.findIndex((row) => this.key(row) === key);
    if (place >= 0) this.show(place, false);
  }

  show(place, focus) {
    const top = place * ROW_HEIGHT;
    const room = this.element.clientHeight - 2 * ROW_HEIGHT; // a head, and a margin
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top > this.element.scrollTop + room) this.element.scrollTop = top - room;
    this.draw();
    const row = this.rows[place] && this.drawn.get(this.key(this.rows[place]));
    if (focus && row) row.querySelector('a')?.focus({ preventScroll: true });
  }
}
