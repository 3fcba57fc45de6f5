// Making elements. Everything that comes from a model or a world passes through `h` or `text`, which make text nodes only.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);
const $ = (id) => document.getElementById(id);

const number = new Intl.NumberFormat('en');
const fmt = {
  int: (x) => (x === null || x === undefined ? '–' : number.format(Math.round(x))),
  num: (x, digits = 2) => (x === null || x === undefined ? '–' : String(Number(Number(x).toFixed(digits)))),
  percent: (x) => (x === null || x === undefined ? '–' : `${(100 * x).toFixed(1)} %`),
  range: (pair) => (pair ? `${(100 * pair[0]).toFixed(1)} – ${(100 * pair[1]).toFixed(1)} %` : ''),
  tokens: (x) => (x >= 1e6 ? `${(x / 1e6).toFixed(1)} M` : x >= 1e4 ? `${(x / 1e3).toFixed(0)} k` : fmt.int(x)),
  cost: (x) => (x === null || x === undefined ? null : `$${x < 0.1 ? x.toFixed(4) : x.toFixed(2)}`),
  seconds: (x) =>
    x === null || x === undefined
      ? '–'
      : x >= 90
        ? x >= 5400
          ? `${(x / 3600).toFixed(1)} h`
          : `${(x / 60).toFixed(1)} min`
        : x >= 1
          ? `${x.toFixed(1)} s`
          : `${Math.round(x * 1000)} ms`,
  plural: (n, word) => `${fmt.int(n)} ${word}${n === 1 ? '' : 's'}`,
};

// Shape and word beside colour: nothing is told by colour alone.
const OUTCOMES = {
  won: { icon: '✓', word: 'won', plural: 'Won' },
  failed: { icon: '✗', word: 'failed', plural: 'Failed' },
  completed: { icon: '•', word: 'completed', plural: 'Completed' },
  error: { icon: '!', word: 'harness error', plural: 'Harness error' },
};
const mark = (outcome, letter = '') =>
  h(
    'span',
    { class: `mark ${outcome}`, title: `${letter ? letter + ': ' : ''}${OUTCOMES[outcome].word}` },
    h('span', { 'aria-hidden': 'true' }, letter, OUTCOMES[outcome].icon),
    h('span', { class: 'sr' }, `${letter} ${OUTCOMES[outcome].word}`),
  );
const outcomeBadge = (row) =>
  h('span', { class: `badge ${row.outcome}` }, `${OUTCOMES[row.outcome].icon} ${OUTCOMES[row.outcome].word}`);

const wanted = { query: '' }; // what the search box holds; hits are marked wherever text is shown

function text(value) {
  const whole = String(value ?? '');
  if (!wanted.query) return [whole];
  const pieces = [];
  const low = whole.toLowerCase();
  // A few characters change length in lower case; then positions would not fit, and nothing is marked.
  if (low.length !== whole.length) return [whole];
  let from = 0;
  for (let at = low.indexOf(wanted.query); at >= 0; at = low.indexOf(wanted.query, from)) {
    pieces.push(whole.slice(from, at), h('mark', {}, whole.slice(at, at + wanted.query.length)));
    from = at + wanted.query.length;
  }
  pieces.push(whole.slice(from));
  return pieces;
}

const has = (value) =>
  Boolean(wanted.query) &&
  String(value ?? '')
    .toLowerCase()
    .includes(wanted.query);

// A block that is folded away until asked for; open at once when it holds what is searched for.
function fold(summary, value, props = {}) {
  const node = h(
    'details',
    { class: `fold ${props.class || ''}`, open: props.open || has(value instanceof Node ? value.textContent : value) },
    h('summary', {}, summary),
  );
  const show = () => {
    if (node.childElementCount === 1) node.append(value instanceof Node ? value : h('div', { class: 'pre' }, text(value)));
  };
  if (node.open) show();
  node.addEventListener('toggle', show);
  return node;
}

// Text with its line breaks. Very long text is cut in view, with the rest one click away.
function prose(value, limit = 4000) {
  const whole = String(value ?? '');
  if (whole.length <= limit || has(whole)) return h('div', { class: 'pre' }, text(whole));
  const box = h('div', {}, h('div', { class: 'pre' }, text(whole.slice(0, limit)), ' …'));
  box.append(
    h(
      'button',
      { class: 'more', type: 'button', onclick: () => box.replaceChildren(h('div', { class: 'pre' }, text(whole))) },
      `Show all ${fmt.int(whole.length)} characters`,
    ),
  );
  return box;
}

function table(head, rows, props = {}) {
  return h(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': props.label || 'Table' },
    h(
      'table',
      { class: props.class || '' },
      props.caption && h('caption', {}, props.caption),
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          head.map((cell) => h('th', { scope: 'col', class: cell.startsWith('#') ? 'num' : null }, cell.replace(/^#/, ''))),
        ),
      ),
      h(
        'tbody',
        {},
        rows.map((row) =>
          h(
            'tr',
            {},
            row.map((cell, i) =>
              h('td', { class: head[i].startsWith('#') ? 'num' : null }, cell instanceof Node ? cell : text(cell)),
            ),
          ),
        ),
      ),
    ),
  );
}

const section = (title, ...children) => h('section', { class: 'card' }, h('h2', {}, title), ...children);
