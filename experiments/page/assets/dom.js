// Elements. Text from runs goes through here as text nodes only: nothing is ever parsed as HTML.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'colour') element.style.setProperty('--colour', value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// A control, which must have an id, with its label before it.
function labelled(text, control) {
  return make('span', { class: 'labelled' }, make('label', { for: control.id }, `${text} `), control);
}

function byId(id) {
  return document.getElementById(id);
}

// The address of a turn on this page.
function turnHash(run, problem, call) {
  return '#' + [run, problem, call].map((part) => encodeURIComponent(part)).join('/');
}
