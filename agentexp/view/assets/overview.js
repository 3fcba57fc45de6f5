// What a run found, before any episode.

const tile = (name, value, below) =>
  h(
    'div',
    { class: 'tile' },
    h('div', { class: 'name' }, name),
    h('div', { class: 'value' }, value),
    below && h('div', { class: 'below' }, below),
  );
const sum = (rows, key) => rows.reduce((total, row) => total + (row[key] || 0), 0);

function overview() {
  const run = runs[0],
    sm = run.summary,
    rows = run.rows;
  const planned = sm.planned ?? rows.length,
    finished = sm.finished ?? rows.filter((r) => r.outcome !== 'error').length;
  const errors = sm.harness_errors ?? rows.length - finished;
  const scored = rows.some((r) => r.outcome === 'won' || r.outcome === 'failed');
  const cost = rows.some((r) => r.cost !== null && r.cost !== undefined) ? fmt.cost(sum(rows, 'cost')) : null;
  const tiles = [
    scored &&
      tile('Success rate', fmt.percent(sm.success_rate), [
        rail(sm.success_rate ?? null, sm.success_interval),
        h('span', {}, sm.success_interval ? `95 % interval ${fmt.range(sm.success_interval)}, n = ${fmt.int(finished)}` : ''),
      ]),
    tile(
      'Episodes',
      `${fmt.int(finished)} / ${fmt.int(planned)}`,
      errors ? `${fmt.plural(errors, 'harness error')}, not counted as failures` : 'finished of planned, no harness errors',
    ),
    tile(
      'Steps',
      fmt.num(sm.mean_steps ?? (rows.length ? sum(rows, 'steps') / rows.length : null), 1),
      'mean per episode, all phases',
    ),
    tile('Model calls', fmt.tokens(sum(rows, 'calls')), [
      `${fmt.tokens(sum(rows, 'tokens_in'))} tokens in, ${fmt.tokens(sum(rows, 'tokens_out'))} out`,
      sm.setup?.calls > 0 && h('div', {}, `and ${fmt.plural(sm.setup.calls, 'call')} before the episodes`),
    ]),
    tile('Time', fmt.seconds(sum(rows, 'seconds')), 'sum over episodes'),
    cost && tile('Cost', cost, 'sum over episodes'),
  ];
  const view = h('div', { class: 'overview' });
  if (sm.partial)
    view.append(
      h(
        'p',
        { class: 'note' },
        `This run is not complete: ${fmt.int(rows.length)} of ${fmt.int(planned)} planned episodes have a record.`,
      ),
    );
  for (const warning of sm.warnings || []) view.append(h('p', { class: 'note' }, warning));
  view.append(h('div', { class: 'tiles' }, tiles));
  if (rows.length) view.append(kindTable(run), ends(rows));
  else view.append(h('p', { class: 'quiet' }, 'No episode is on record yet.'));
  const known = run.artefacts || {};
  if (known.k_g)
    view.append(
      section(
        'General rules K_g',
        rulesView(known.k_g),
        known.k_g_from && fold('Where they come from', valueView(known.k_g_from)),
      ),
    );
  const others = Object.entries(known).filter(([name]) => name !== 'k_g' && name !== 'k_g_from');
  if (others.length)
    view.append(
      section(
        'Prepared for all episodes',
        others.map(([name, value]) => fold(name.replaceAll('_', ' '), valueView(value))),
      ),
    );
  view.append(
    section(
      'Settings and versions',
      fold('All results in summary.json', valueView(sm)),
      fold('Settings', valueView(run.settings)),
      fold('Versions', valueView(run.versions)),
    ),
  );
  return view;
}

function kindTable(run) {
  const link = (kind) => h('a', { href: '#list', onclick: () => setFilter({ kind, outcome: '' }) }, kind || 'all');
  return section(
    'Results by task type',
    table(
      [
        'task type',
        '#success',
        'interval',
        '#95 %',
        '#n',
        '#mean steps',
        '#mean score',
        '#unreadable replies',
        '#harness errors',
      ],
      run.kinds.map((k) => [
        link(k.kind),
        fmt.percent(k.rate),
        rail(k.rate, k.interval),
        fmt.range(k.interval),
        fmt.int(k.n),
        fmt.num(k.steps, 1),
        fmt.num(k.score),
        fmt.int(k.invalid),
        fmt.int(k.errors),
      ]),
      { label: 'Results by task type', class: 'kinds' },
    ),
    h('p', { class: 'quiet' }, 'n counts finished episodes; harness errors are in no rate. Wilson intervals.'),
  );
}

function ends(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.end, [...(groups.get(row.end) || []), row]);
  const sorted = [...groups].sort((x, y) => y[1].length - x[1].length);
  const most = sorted[0][1].length;
  return section(
    'How episodes ended',
    h(
      'ul',
      { class: 'bars' },
      sorted.map(([end, members]) =>
        h(
          'li',
          {},
          h(
            'a',
            { href: '#list', onclick: () => setFilter({ end, outcome: '', kind: '' }) },
            end.replaceAll('_', ' ') || 'unknown',
          ),
          s(
            'svg',
            { class: 'meter', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
            s('rect', { class: members[0].outcome, width: (100 * members.length) / most, height: 8, rx: 1 }),
          ),
          h('span', { class: 'num' }, fmt.int(members.length)),
        ),
      ),
    ),
  );
}
