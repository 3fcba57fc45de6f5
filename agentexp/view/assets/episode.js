// One episode: its head, a strip of its steps, and its stages with what was learnt in between.

const PHASES = { mapping: 'Mapping', acting: 'Acting', exploring: 'Exploring', exploration: 'Exploring' };
const phaseName = (name) =>
  PHASES[name] || (name ? name[0].toUpperCase() + name.slice(1).replaceAll('_', ' ') : 'Before the first phase');
const HANDLED = new Set(['map', 'map_source', 'map_error', 'stop', 'stop_trace', 'failed_attempts', 'checkpoints', 'summary']);

function facts(row, ep) {
  const u = ep.usage || {};
  const list = [
    [
      'steps',
      Object.entries(ep.steps_by_phase || {})
        .map(([p, n]) => `${n} ${p}`)
        .join(' + ') || fmt.int(ep.steps),
    ],
    ['score', fmt.num(ep.score)],
    ['model calls', fmt.int(u.calls)],
    [
      'tokens',
      `${fmt.tokens(u.prompt_tokens)} in, ${fmt.tokens(u.completion_tokens)} out${u.cached_tokens ? `, ${fmt.tokens(u.cached_tokens)} cached` : ''}`,
    ],
    ['time', fmt.seconds(ep.seconds)],
  ];
  if (fmt.cost(u.cost)) list.push(['cost', fmt.cost(u.cost)]);
  if (row.invalid) list.push(['unreadable replies', fmt.int(row.invalid)]);
  if (row.refused) list.push(['refused actions', fmt.int(row.refused)]);
  if (ep.attempts > 1) list.push(['attempts', fmt.int(ep.attempts)]);
  return h(
    'dl',
    { class: 'facts' },
    list.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
  );
}

// One small cell per step, by phase; unreadable, refused and solving steps differ in shape as well.
function strip(ep, goTo) {
  if (!ep.trajectory.length) return null;
  const cells = ep.trajectory.map((step, i) => {
    const state = step.success ? 'good' : step.status !== 'ok' ? 'bad' : step.error ? 'warn' : '';
    const label = `${step.phase}: ${step.action ?? FLAG_WORDS[step.status]}${step.error && step.status === 'ok' ? ' (refused)' : ''}`;
    return h('button', {
      type: 'button',
      class: `cell ${state}`,
      title: label,
      'aria-label': label,
      tabindex: i ? '-1' : '0',
      onclick: () => goTo(`[data-step="${i}"]`),
    });
  });
  const move = (event) => {
    const at = cells.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: cells.length - 1 }[event.key];
    if (at < 0 || to === undefined || !cells[to]) return;
    event.preventDefault();
    cells[at].tabIndex = -1;
    cells[to].tabIndex = 0;
    cells[to].focus();
  };
  const jump = (words, selector) =>
    h('button', { type: 'button', class: 'jump', onclick: () => goTo(selector, 'start') }, words);
  const groups = [];
  ep.trajectory.forEach((step, i) => {
    if (!i || ep.trajectory[i - 1].phase !== step.phase) groups.push({ phase: step.phase, first: i, cells: [] });
    groups[groups.length - 1].cells.push(cells[i]);
  });
  return h(
    'div',
    { class: 'strip', role: 'toolbar', 'aria-label': 'Steps; arrow keys move', onkeydown: move },
    groups.map((group) =>
      h('div', { class: 'strip-group' }, jump(phaseName(group.phase), `[data-first="${group.first}"]`), group.cells),
    ),
    ep.notes?.map && jump('Map', '.aside-card.map'),
  );
}

const ended = (row) => [
  outcomeBadge(row),
  row.end !== OUTCOMES[row.outcome].word && h('span', { class: 'quiet' }, row.end.replaceAll('_', ' ')),
];

function knowledgeViews(ep, run) {
  const notes = ep.notes || {},
    views = [];
  if (Array.isArray(notes.stop_trace) && notes.stop_trace.length)
    views.push(
      h(
        'div',
        { class: 'aside-card' },
        h('h3', {}, 'When to stop mapping'),
        stopTrace(notes.stop_trace, notes.stop, run.settings.stopping),
      ),
    );
  if (notes.map) {
    const source = notes.map_source ? `from ${notes.map_source}` : '';
    views.push(
      h(
        'div',
        { class: 'aside-card map', tabindex: '-1' },
        h('h3', {}, h('span', {}, 'Map M', h('sub', {}, 't')), h('span', { class: 'aside' }, source)),
        notes.map_error && h('p', { class: 'chip warn' }, text(notes.map_error)),
        mapView(notes.map),
      ),
    );
  } else if (notes.map_error) views.push(h('p', { class: 'chip warn' }, text(notes.map_error)));
  if (typeof notes.summary === 'string' && notes.summary)
    views.push(h('div', { class: 'aside-card map' }, h('h3', {}, 'What was learnt: the summary K'), prose(notes.summary)));
  if (notes.checkpoints?.length)
    views.push(h('div', { class: 'aside-card' }, h('h3', {}, 'Checkpoints'), checkpointView(notes.checkpoints)));
  return views;
}

// `beside`: the episode of the same task in the other run, where two are compared.
function episodeView(run, row, ep, beside = null) {
  const stages = conversation(ep);
  const points = (ep.notes?.checkpoints || []).filter((c) => c.step !== null);
  const hits = (phase, t) => (/^explor/.test(phase) ? points.filter((c) => c.step === t) : []);
  const body = h('div', { class: 'episode' });
  const goTo = (selector, block = 'center') => {
    const node = body.querySelector(selector);
    for (let fold = node.closest('details'); fold; fold = fold.parentElement.closest('details')) fold.open = true;
    node.scrollIntoView({ block, behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
    node.focus({ preventScroll: true });
  };
  body.append(
    h(
      'header',
      { class: 'episode-head' },
      h(
        'div',
        { class: 'line' },
        ended(row),
        row.kind && chip(row.kind),
        h('span', { class: 'quiet' }, `seed ${row.seed}${row.repeat ? ` · repeat ${row.repeat}` : ''}`),
      ),
      ep.goal && h('p', { class: 'goal' }, h('span', { class: 'who' }, 'Goal '), text(ep.goal)),
      facts(row, ep),
      strip(ep, goTo),
    ),
  );
  if (ep.error)
    body.append(
      h(
        'section',
        { class: 'card trouble' },
        h('h3', {}, ep.status === 'error' ? 'Harness error' : 'Why it ended'),
        h('pre', {}, text(ep.error)),
      ),
    );
  if (ep.notes?.failed_attempts?.length && ep.attempts > 1)
    body.append(
      fold(
        fmt.plural(ep.notes.failed_attempts.length, 'failed attempt') + ' before this record',
        h(
          'div',
          {},
          ep.notes.failed_attempts.map((e) => h('pre', {}, text(e))),
        ),
      ),
    );
  const learnt = knowledgeViews(ep, run);
  const last = Math.max(...stages.map((stage, i) => (/^(mapping|explor)/.test(stage.name) ? i : -1)));
  if (run.artefacts.k_g) body.append(fold('General rules K_g that the agent was given', rulesView(run.artefacts.k_g)));
  // Beside another run, what only this one has is folded away, so that the common stages stand at the same height.
  const learn = () => {
    if (!beside) body.append(...learnt);
    else if (learnt.length)
      body.append(
        h(
          'details',
          { class: 'fold', open: wanted.query !== '' },
          h('summary', {}, 'What was learnt'),
          h('div', { class: 'episode' }, learnt),
        ),
      );
  };
  if (last < 0) learn();
  stages.forEach((stage, i) => {
    const head = h(
      'h3',
      { class: 'stage-head', 'data-first': stage.first, tabindex: '-1' },
      phaseName(stage.name),
      h('span', { class: 'n' }, stage.steps ? fmt.plural(stage.steps, 'step') : ''),
    );
    const turns = h(
      'section',
      { class: 'stage' },
      stage.events.map((event) => eventView(event, hits)),
    );
    const alone = beside && !beside.trajectory.some((step) => step.phase === stage.name);
    if (alone)
      body.append(
        head,
        h('details', { class: 'fold', open: wanted.query !== '' }, h('summary', {}, 'Only in this run'), turns),
      );
    else body.append(head, turns);
    if (i === last) learn();
  });
  if (!stages.length) body.append(h('p', { class: 'quiet' }, 'No step and no model call is on record.'));
  const rest = Object.entries(ep.notes || {}).filter(([name]) => !HANDLED.has(name));
  if (rest.length)
    body.append(
      h(
        'div',
        { class: 'aside-card' },
        h('h3', {}, 'Notes'),
        rest.map(([name, value]) =>
          fold(name.replaceAll('_', ' '), valueView(value), { open: JSON.stringify(value).length < 600 }),
        ),
      ),
    );
  body.append(h('section', { class: 'end line' }, ended(row)));
  return body;
}
