// What was learnt: the map M_t, the rules K_g, checkpoints, and any other note as tables.

const titled = (title, n, node) => h('div', { class: 'part' }, h('h4', {}, title, h('span', { class: 'n' }, n)), node);
const bullets = (items) =>
  h(
    'ul',
    { class: 'plain' },
    items.map((item) => h('li', {}, typeof item === 'string' ? text(item) : valueView(item))),
  );

function mapView(map) {
  const parts = [];
  const add = (key, title, make) => {
    const list = map[key];
    if (Array.isArray(list) && list.length) parts.push(titled(title, list.length, make(list)));
  };
  add('spatial', 'Spatial layout', (list) =>
    table(
      ['thing', 'relation', 'place'],
      list.map((e) => [e.thing, e.relation, e.place]),
      { label: 'Spatial layout' },
    ),
  );
  add('absent', 'Not there', (list) =>
    table(
      ['place', 'what'],
      list.map((e) => [e.place, e.what]),
      { label: 'Not there' },
    ),
  );
  add('affordances', 'Affordances', (list) =>
    table(
      ['action', 'target', 'works', 'effect', 'requires'],
      list.map((e) => [
        e.action,
        e.target,
        h('span', { class: e.works ? 'yes' : 'no' }, e.works ? '✓ yes' : '✗ no'),
        e.effect ?? '',
        e.requires ?? '',
      ]),
      { label: 'Affordances' },
    ),
  );
  add('task_notes', 'About the task', bullets);
  add('unknown', 'Not looked into', bullets);
  if (!parts.length) return h('p', { class: 'quiet' }, 'The map is empty.');
  return h('div', { class: 'parts' }, parts);
}

const KG_TITLES = {
  action_syntax: 'How to write actions',
  interaction_rules: 'What actions need and do',
  observation_conventions: 'How to read observations',
  error_patterns: 'Errors and what to do',
  environment_facts: 'Facts',
  exploration_advice: 'Advice for exploring',
};

function rulesView(rules) {
  const keys = [
    ...Object.keys(KG_TITLES).filter((key) => key in rules),
    ...Object.keys(rules).filter((key) => !(key in KG_TITLES)),
  ];
  const parts = keys
    .filter((key) => !Array.isArray(rules[key]) || rules[key].length)
    .map((key) => titled(KG_TITLES[key] || key, Array.isArray(rules[key]) ? rules[key].length : '', valueView(rules[key])));
  return parts.length ? h('div', { class: 'parts' }, parts) : h('p', { class: 'quiet' }, 'No rules.');
}

const isPlain = (value) => value === null || typeof value !== 'object';
const flat = (value) =>
  !isPlain(value) &&
  !Array.isArray(value) &&
  Object.values(value).every((v) => isPlain(v) || (Array.isArray(v) && v.every(isPlain)));
const cellText = (value) =>
  Array.isArray(value) ? value.join(', ') : value === true ? 'yes' : value === false ? 'no' : (value ?? '');

// Any JSON value, as readable as its form allows.
function valueView(value) {
  if (isPlain(value)) return prose(cellText(value));
  if (Array.isArray(value)) {
    if (!value.length) return h('span', { class: 'quiet' }, 'none');
    if (value.every(isPlain)) return bullets(value.map(cellText).map(String));
    if (value.every(flat)) {
      const head = [...new Set(value.flatMap((entry) => Object.keys(entry)))];
      if (head.length <= 9)
        return table(
          head,
          value.map((entry) => head.map((key) => cellText(entry[key]))),
        );
    }
    return h(
      'ol',
      { class: 'plain' },
      value.map((entry) => h('li', {}, valueView(entry))),
    );
  }
  const entries = Object.entries(value);
  if (!entries.length) return h('span', { class: 'quiet' }, 'none');
  return h(
    'dl',
    { class: 'pairs' },
    entries.map(([key, item]) => [h('dt', {}, text(key)), h('dd', {}, valueView(item))]),
  );
}

// Checkpoints of ECC (paper 001): {kind, name, step}; step: the exploring step that first covered it, 0 for the start, or null.
function checkpointView(list) {
  const hit = list.filter((c) => c.step !== null).sort((x, y) => x.step - y.step);
  const kinds = [...new Set(list.map((c) => c.kind))].map((kind) => {
    const of = (all) => all.filter((c) => c.kind === kind).length;
    return `${kind} ${of(hit)} / ${of(list)}`;
  });
  const missed = list.filter((c) => c.step === null);
  return h(
    'div',
    { class: 'parts' },
    h('p', {}, `${hit.length} of ${list.length} covered (ECC ${fmt.percent(hit.length / list.length)}) · ${kinds.join(' · ')}`),
    hit.length > 1 && coverageCurve(hit, list.length),
    fold(
      'All checkpoints',
      table(
        ['kind', 'checkpoint', '#first hit'],
        [...hit, ...missed].map((c) => [c.kind, c.name, c.step ?? '–']),
        { label: 'Checkpoints' },
      ),
      { open: list.length <= 12 },
    ),
  );
}
