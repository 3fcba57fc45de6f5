// The list of episodes and its filters.

const filter = { outcome: '', invalid: false, kind: '', end: '', sort: 'plan', query: '' };
const PAGE = 150; // rows made at a time; more follow when their end comes into view
let hits = null; // indices found by the search, null while nothing is searched for
let listed = []; // indices shown, in order

const rowOf = (i) => runs[0].rows[i];
const pairOf = (i) => runs.map((run) => run.rows[i]);
const anyOf = (i, test) => pairOf(i).some(test);

const RUN_CHOICES = ['won', 'failed', 'completed', 'error'].map((outcome) => ({
  value: outcome,
  label: OUTCOMES[outcome].plural,
  test: (i) => rowOf(i).outcome === outcome,
}));
const both = (x, y) => (i) => rowOf(i).outcome === x && runs[1].rows[i].outcome === y;
const PAIR_CHOICES = [
  { value: 'different', label: 'Different', test: (i) => rowOf(i).outcome !== runs[1].rows[i].outcome },
  { value: 'a', label: 'Only A won', test: both('won', 'failed') },
  { value: 'b', label: 'Only B won', test: both('failed', 'won') },
  { value: 'both', label: 'Both won', test: both('won', 'won') },
  { value: 'neither', label: 'Neither won', test: both('failed', 'failed') },
  { value: 'error', label: 'Harness error', test: (i) => anyOf(i, (row) => row.outcome === 'error') },
];
const CHOICES = comparing ? PAIR_CHOICES : RUN_CHOICES;
const all = runs[0].rows.map((_, i) => i);

const SORTS = {
  plan: ['Order of the plan', null],
  steps: ['Most steps', (row) => -row.steps],
  tokens: ['Most tokens', (row) => -(row.tokens_in + row.tokens_out)],
  seconds: ['Longest time', (row) => -row.seconds],
  score: ['Lowest score', (row) => row.score],
  invalid: ['Most unreadable replies', (row) => -row.invalid],
};

function setFilter(change) {
  Object.assign(filter, change);
  drawFilters();
  drawList();
}

function drawFilters() {
  const focused = document.activeElement?.dataset?.keep;
  const chips = [
    { value: '', label: 'All', test: () => true },
    ...CHOICES.filter((c) => all.some(c.test) || (comparing && c.value !== 'error')),
  ];
  const choose = (label, key, values, name = (value) => value || '(none)') =>
    values.length > 1 &&
    h(
      'label',
      { class: 'pick' },
      h('span', {}, label),
      h(
        'select',
        { 'data-keep': key, onchange: (event) => setFilter({ [key]: event.target.value }) },
        h('option', { value: '' }, 'all'),
        values.map((value) => h('option', { value, selected: filter[key] === value }, name(value))),
      ),
    );
  const distinct = (key) => [...new Set(all.flatMap((i) => pairOf(i).map((row) => row[key])))].filter(Boolean).sort();
  const invalid = all.filter((i) => anyOf(i, (row) => row.invalid)).length;
  if (!$('search')) {
    $('filters').append(
      h(
        'div',
        { class: 'search' },
        h('input', {
          id: 'search',
          type: 'search',
          placeholder: 'Search in all messages',
          'aria-label': 'Search in all messages',
          autocomplete: 'off',
          spellcheck: 'false',
          oninput: (event) => search(event.target.value),
        }),
        h('progress', { id: 'searching', max: '1', value: '0', hidden: true, 'aria-label': 'Searching' }),
      ),
      h('div', { id: 'choices' }),
    );
  }
  $('choices').replaceChildren(
    h(
      'div',
      { class: 'chips', role: 'group', 'aria-label': 'Outcome' },
      chips.map((c) =>
        h(
          'button',
          {
            type: 'button',
            'data-keep': `o-${c.value}`,
            class: `choice ${c.value}`,
            'aria-pressed': String(filter.outcome === c.value),
            onclick: () => setFilter({ outcome: c.value }),
          },
          c.label,
          h('span', { class: 'n' }, fmt.int(all.filter(c.test).length)),
        ),
      ),
      invalid > 0 &&
        h(
          'button',
          {
            type: 'button',
            'data-keep': 'invalid',
            class: 'choice invalid',
            'aria-pressed': String(filter.invalid),
            title: 'Episodes with at least one reply that could not be read',
            onclick: () => setFilter({ invalid: !filter.invalid }),
          },
          'Invalid replies',
          h('span', { class: 'n' }, fmt.int(invalid)),
        ),
    ),
    h(
      'div',
      { class: 'picks' },
      choose('Task type', 'kind', distinct('kind')),
      choose('Ended by', 'end', distinct('end'), (v) => v.replaceAll('_', ' ')),
      h(
        'label',
        { class: 'pick' },
        h('span', {}, 'Sort'),
        h(
          'select',
          { 'data-keep': 'sort', onchange: (event) => setFilter({ sort: event.target.value }) },
          Object.entries(SORTS).map(([value, [label]]) => h('option', { value, selected: filter.sort === value }, label)),
        ),
      ),
    ),
  );
  if (focused) document.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus();
}

function drawList() {
  const choice = CHOICES.find((c) => c.value === filter.outcome);
  listed = all.filter(
    (i) =>
      (!choice || choice.test(i)) &&
      (!filter.invalid || anyOf(i, (row) => row.invalid)) &&
      (!filter.kind || rowOf(i).kind === filter.kind) &&
      (!filter.end || anyOf(i, (row) => row.end === filter.end)) &&
      (!hits || hits.has(i)),
  );
  const by = SORTS[filter.sort][1];
  if (by) listed.sort((i, j) => by(rowOf(i)) - by(rowOf(j)) || i - j);
  $('count').replaceChildren(
    listed.length === all.length
      ? fmt.plural(all.length, comparing ? 'shared task' : 'episode')
      : `${fmt.int(listed.length)} of ${fmt.plural(all.length, comparing ? 'task' : 'episode')}`,
    isFiltered() && h('button', { type: 'button', class: 'more', onclick: clearFilters }, 'Clear'),
  );
  const list = $('rows');
  list.replaceChildren();
  let made = 0;
  const more = () => {
    list.append(...listed.slice(made, made + PAGE).map(rowView));
    made += PAGE;
    if (made < listed.length) {
      const end = h(
        'li',
        { class: 'sentinel' },
        h('button', { type: 'button', class: 'more', onclick: () => next() }, `${fmt.int(listed.length - made)} more`),
      );
      const seen = new IntersectionObserver((entries) => entries.some((e) => e.isIntersecting) && next(), {
        rootMargin: '600px',
      });
      const next = () => {
        seen.disconnect();
        end.remove();
        more();
      };
      list.append(end);
      seen.observe(end);
    }
  };
  more();
  markCurrent();
}

const isFiltered = () => filter.outcome || filter.invalid || filter.kind || filter.end || filter.query;
function clearFilters() {
  $('search').value = '';
  search('');
  setFilter({ outcome: '', invalid: false, kind: '', end: '' });
  $('search').focus();
}

const address = (i) => `#ep=${encodeURIComponent(rowOf(i).key)}`;
const label = (row) => `${row.id}${row.seed ? ` · seed ${row.seed}` : ''}${row.repeat ? ` · repeat ${row.repeat}` : ''}`;

function rowView(i) {
  const [a, b] = pairOf(i);
  const below = [a.kind, a.end.replaceAll('_', ' ')].filter(Boolean).join(' · ');
  const odd = b && a.outcome !== b.outcome;
  const unread = a.invalid + (b ? b.invalid : 0);
  return h(
    'li',
    {},
    h(
      'a',
      { class: `row${odd ? ' odd' : ''}`, href: address(i), 'data-i': i },
      b ? h('span', { class: 'marks' }, mark(a.outcome, 'A'), mark(b.outcome, 'B')) : mark(a.outcome),
      h('span', { class: 'id', title: a.id }, label(a)),
      h('span', { class: 'side' }, b ? `${a.steps} | ${b.steps}` : `${a.steps} steps`),
      h(
        'span',
        { class: 'under' },
        h('span', { class: 'text' }, a.goal || below),
        unread > 0 && chip(`${unread} unreadable`, 'bad'),
        !b && a.tokens_in > 0 && h('span', {}, `${fmt.tokens(a.tokens_in + a.tokens_out)} tok`),
      ),
    ),
  );
}

function markCurrent() {
  for (const link of document.querySelectorAll('#rows a[aria-current]')) link.removeAttribute('aria-current');
  if (current === null) return;
  const link = document.querySelector(`#rows a[data-i="${current}"]`);
  link?.setAttribute('aria-current', 'page');
  link?.scrollIntoView({ block: 'nearest' });
}
