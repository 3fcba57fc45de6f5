// Addresses (#overview, #list, #ep=KEY), keys, and the frame around everything.

let current = null; // index of the open episode
let opened = 0;

const narrow = matchMedia('(max-width: 860px)');
const go = (hash) => {
  location.hash = hash;
};

function place(view) {
  document.body.dataset.view = view;
  for (const name of ['overview', 'list']) {
    const on = name === view || (name === 'list' && view === 'episode');
    $(`tab-${name}`).toggleAttribute('aria-current', on);
  }
}

function route() {
  const hash = location.hash.slice(1);
  if (hash.startsWith('ep=')) {
    const key = decodeURIComponent(hash.slice(3));
    const i = runs[0].rows.findIndex((row) => row.key === key);
    if (i >= 0) return void openEpisode(i);
  }
  current = null;
  place(hash === 'list' ? 'list' : 'overview');
  $('main').replaceChildren(comparing ? comparisonOverview() : overview());
  $('main').scrollTop = 0;
  markCurrent();
  if (narrow.matches) scrollTo(0, 0);
}

async function openEpisode(i, keep = false) {
  const mine = ++opened,
    rows = pairOf(i),
    main = $('main');
  current = i;
  place('episode');
  markCurrent();
  const at = listed.indexOf(i);
  const step = (by, words) =>
    h(
      'a',
      {
        class: 'icon',
        href: listed[at + by] === undefined ? null : address(listed[at + by]),
        'aria-label': words,
        'aria-disabled': String(listed[at + by] === undefined),
      },
      by < 0 ? '↑' : '↓',
    );
  const head = h(
    'div',
    { class: 'crumbs' },
    h('a', { class: 'icon back', href: '#list', 'aria-label': 'Back to the list' }, '←'),
    h('h2', { class: 'key', title: rows[0].key }, text(label(rows[0]))),
    h('span', { class: 'quiet' }, at >= 0 ? `${fmt.int(at + 1)} / ${fmt.int(listed.length)}` : ''),
    step(-1, 'Previous episode'),
    step(1, 'Next episode'),
  );
  const hold = setTimeout(() => mine === opened && main.replaceChildren(head, h('p', { class: 'quiet' }, 'Reading …')), 120);
  try {
    const episodes = await Promise.all(rows.map((row, r) => episodeOf(r, row)));
    if (mine !== opened || current !== i) return;
    const before = main.scrollTop;
    main.replaceChildren(head, comparing ? pairView(rows, episodes) : episodeView(runs[0], rows[0], episodes[0]));
    document.title = `${rows[0].id} · ${runs[0].title}`;
    main.scrollTop = keep ? before : 0;
    if (!keep) {
      if (narrow.matches) scrollTo(0, 0);
      const hit = wanted.query && main.querySelector('mark');
      if (hit) hit.scrollIntoView({ block: 'center' });
    }
  } catch (error) {
    showError(error);
  } finally {
    clearTimeout(hold);
  }
}

// Show the open episode again: the marks of the search have changed.
const redraw = () => {
  if (current !== null) openEpisode(current, true);
};

function showError(error) {
  $('main').replaceChildren(
    h(
      'div',
      { class: 'card trouble' },
      h('h2', {}, 'This cannot be shown'),
      h('pre', {}, String(error && error.message ? error.message : error)),
    ),
  );
}

function move(by) {
  const at = current === null ? (by > 0 ? -1 : listed.length) : listed.indexOf(current);
  const i = listed[at + by];
  if (i !== undefined) go(address(i));
}

const KEYS = [
  ['j  k', 'next, previous episode', { j: () => move(1), k: () => move(-1) }],
  [
    '/',
    'search',
    {
      '/': () => {
        if (narrow.matches) go('#list');
        $('search').focus();
      },
    },
  ],
  ['n  p', 'next, previous hit in the open episode', { n: () => hop(1), p: () => hop(-1) }],
  ['o', 'overview', { o: () => go('#overview') }],
  ['Esc', 'back to the list', { Escape: () => (document.activeElement === $('search') ? $('search').blur() : go('#list')) }],
  ['?', 'these keys', { '?': () => $('keys').showModal() }],
];
const ACTIONS = Object.assign({}, ...KEYS.map(([, , actions]) => actions));

let hopAt = -1;
function hop(by) {
  const marks = [...$('main').querySelectorAll('mark')];
  if (!marks.length) return;
  marks.forEach((m) => m.classList.remove('on'));
  hopAt = (hopAt + by + marks.length) % marks.length;
  marks[hopAt].classList.add('on');
  marks[hopAt].scrollIntoView({ block: 'center' });
}

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $('keys').open) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName || '');
  const action = ACTIONS[event.key];
  if (!action || (typing && event.key !== 'Escape')) return;
  event.preventDefault();
  action();
});

function theme(choice) {
  const themes = ['auto', 'light', 'dark'];
  if (!themes.includes(choice)) choice = 'auto';
  if (choice === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  $('theme').textContent = { auto: '◐', light: '☀', dark: '☾' }[choice];
  $('theme').title = `Colours: ${choice}`;
  $('theme').onclick = () => {
    const next = themes[(themes.indexOf(choice) + 1) % 3];
    try {
      localStorage.setItem('agentexp-theme', next);
    } catch {
      /* a file may have no storage: the choice lasts for this visit */
    }
    theme(next);
  };
}

const topbar = document.querySelector('.topbar');
new ResizeObserver(() => document.documentElement.style.setProperty('--bar', `${topbar.offsetHeight}px`)).observe(topbar);

let saved = 'auto';
try {
  saved = localStorage.getItem('agentexp-theme') || 'auto';
} catch {
  /* see above */
}
theme(saved);
$('title').append(
  ...(comparing
    ? runs.map((run, i) => h('span', { class: 'run-name' }, h('b', { class: `letter ${'ab'[i]}` }, 'AB'[i]), ` ${run.title}`))
    : [
        h(
          'span',
          { class: 'run-name' },
          runs[0].title,
          h(
            'span',
            { class: 'quiet' },
            [runs[0].labels.command, runs[0].labels.split].filter(Boolean).map((x) => ` · ${x}`),
          ),
        ),
      ]),
);
$('tab-list').append(h('span', { class: 'n' }, fmt.int(all.length)));
$('help').onclick = () => $('keys').showModal();
$('keys').append(
  h('h2', {}, 'Keys'),
  h(
    'dl',
    { class: 'keys' },
    KEYS.map(([keys, words]) => [
      h(
        'dt',
        {},
        keys.split('  ').map((key) => h('kbd', {}, key)),
      ),
      h('dd', {}, words),
    ]),
  ),
  h('form', { method: 'dialog' }, h('button', { class: 'choice', type: 'submit' }, 'Close')),
);
$('keys').addEventListener('click', (event) => event.target === $('keys') && $('keys').close());
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  $('main').focus();
});
drawFilters();
drawList();
addEventListener('hashchange', route);
route();
