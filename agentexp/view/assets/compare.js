// Two runs side by side.

function comparisonOverview() {
  const [a, b] = runs,
    { paired, only, differences } = meta;
  const view = h('div', { class: 'overview' });
  const side = (letter, run, i) =>
    h(
      'div',
      { class: `tile side-${letter}` },
      h('div', { class: 'name' }, h('b', { class: `letter ${letter}` }, letter.toUpperCase()), ` ${run.title}`),
      h('div', { class: 'value' }, fmt.percent(paired.rates[i])),
      h(
        'div',
        { class: 'below' },
        rail(paired.rates[i], paired.intervals[i]),
        `${paired.won[i]} of ${paired.n} shared tasks won · ${fmt.range(paired.intervals[i])}`,
      ),
    );
  const points = (x) => `${x > 0 ? '+' : ''}${(100 * x).toFixed(1)}`;
  const test =
    paired.p === null
      ? 'no task was decided differently'
      : `McNemar exact p = ${paired.p < 0.0001 ? '< 0.0001' : fmt.num(paired.p, 4)}`;
  const [difference, low, high] = paired.difference || [];
  view.append(
    h(
      'div',
      { class: 'tiles two' },
      side('a', a, 0),
      side('b', b, 1),
      h(
        'div',
        { class: 'tile' },
        h('div', { class: 'name' }, 'B − A, in points'),
        h('div', { class: 'value' }, paired.difference ? points(difference) : '–'),
        h(
          'div',
          { class: 'below' },
          paired.difference && h('div', {}, `95 % interval ${points(low)} to ${points(high)}, paired bootstrap`),
          h('div', {}, test),
        ),
      ),
    ),
  );
  const cell = (choice) => {
    const c = CHOICES.find((x) => x.value === choice);
    return h(
      'a',
      { class: 'big', href: '#list', onclick: () => setFilter({ outcome: choice }) },
      fmt.int(all.filter(c.test).length),
    );
  };
  view.append(
    section(
      'Who won what',
      table(
        ['', 'B won', 'B failed'],
        [
          [h('b', {}, 'A won'), cell('both'), cell('a')],
          [h('b', {}, 'A failed'), cell('b'), cell('neither')],
        ],
        { class: 'square', label: 'Who won what' },
      ),
      h(
        'p',
        { class: 'quiet' },
        `n = ${paired.n} tasks finished in both; ${all.length - paired.n} shared tasks are in no rate (harness errors, or no success criterion). Not shared: ${only[0]} only in A, ${only[1]} only in B.`,
      ),
    ),
  );
  const mean = (run, key) => (run.rows.length ? sum(run.rows, key) / run.rows.length : null);
  const line = (name, key, show) => [name, show(mean(a, key)), show(mean(b, key)), show(mean(b, key) - mean(a, key))];
  view.append(
    section(
      'Means per shared task',
      table(
        ['', '#A', '#B', '#B − A'],
        [
          line('steps', 'steps', (x) => fmt.num(x, 1)),
          line('score', 'score', (x) => fmt.num(x, 3)),
          line('model calls', 'calls', (x) => fmt.num(x, 1)),
          line('prompt tokens', 'tokens_in', fmt.int),
          line('completion tokens', 'tokens_out', fmt.int),
          line('seconds', 'seconds', (x) => fmt.num(x, 2)),
          line('unreadable replies', 'invalid', (x) => fmt.num(x, 2)),
        ],
      ),
    ),
  );
  view.append(
    section(
      'Settings that differ',
      differences.length
        ? table(
            ['setting', 'A', 'B'],
            differences.map(([name, x, y]) => [h('code', {}, name), show(x), show(y)]),
          )
        : h('p', { class: 'quiet' }, 'None.'),
    ),
  );
  return view;
}

const show = (value) => (value === null || value === undefined ? '–' : isPlain(value) ? String(value) : JSON.stringify(value));

// First step at which the two did something different, by phase.
function divergence(x, y) {
  const result = [];
  for (const phase of new Set([...x.trajectory, ...y.trajectory].map((step) => step.phase))) {
    const [p, q] = [x, y].map((ep) => ep.trajectory.map((step, i) => ({ ...step, i })).filter((step) => step.phase === phase));
    if (!p.length || !q.length) continue;
    let same = 0;
    while (same < p.length && same < q.length && p[same].action === q[same].action) same++;
    result.push({ phase, same, all: same === p.length && same === q.length, at: [p[same]?.i, q[same]?.i] });
  }
  return result;
}

function pairView(rows, episodes) {
  const columns = rows.map((row, i) => {
    const letter = 'ab'[i];
    const view = episodeView(runs[i], row, episodes[i], episodes[1 - i]);
    return h(
      'section',
      { class: `column ${letter}`, 'aria-label': letter.toUpperCase() },
      h('h2', { class: 'column-head' }, h('b', { class: `letter ${letter}` }, letter.toUpperCase()), ' ', runs[i].title),
      view,
    );
  });
  const apart = divergence(...episodes);
  for (const { same, all: equal, at } of apart) {
    if (equal) continue;
    at.forEach((index, i) => {
      const answer = index === undefined ? null : columns[i].querySelector(`[data-step="${index}"]`);
      const said = answer?.previousElementSibling;
      (said?.classList.contains('model') ? said : answer)?.classList.add('apart');
    });
  }
  const words = apart.map(
    ({ phase, same, all: equal }) =>
      `${phaseName(phase)}: ${equal ? 'the same actions' : same ? `the same first ${fmt.plural(same, 'action')}, then different` : 'different from the first action'}`,
  );
  const box = h('div', { class: 'pair show-a' });
  const tabs = h(
    'div',
    { class: 'pair-tabs', role: 'group', 'aria-label': 'Run to show' },
    ['a', 'b'].map((letter, i) =>
      h(
        'button',
        {
          type: 'button',
          class: 'choice',
          'aria-pressed': String(!i),
          onclick: (event) => {
            box.className = `pair show-${letter}`;
            tabs
              .querySelectorAll('button')
              .forEach((button) => button.setAttribute('aria-pressed', String(button === event.currentTarget)));
          },
        },
        `${letter.toUpperCase()} ${OUTCOMES[rows[i].outcome].icon}`,
      ),
    ),
  );
  box.append(
    words.length ? h('p', { class: 'quiet apart-note' }, words.join(' · ')) : '',
    tabs,
    h('div', { class: 'columns' }, columns),
  );
  return box;
}
