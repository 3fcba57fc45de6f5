// Search in the text of all episodes: blocks are inflated one after the other, so the page stays responsive.

let searchNumber = 0,
  searchTimer = 0;
const found = new Map(); // lower-case texts of a block, while there is room
const ROOM = 96e6; // characters
let used = 0;

// Everything a person reads of an episode, in lower case.
function readable(ep) {
  const parts = [ep.goal, ep.error];
  for (const messages of Object.values(ep.chats)) for (const message of messages) parts.push(message.content);
  for (const call of ep.calls) parts.push(call.raw || '', call.reasoning || '');
  for (const step of ep.trajectory)
    parts.push(step.action || '', step.observation, step.rewrite || '', (step.flags || []).join(' '));
  const walk = (value) => {
    if (typeof value === 'string') parts.push(value);
    else if (value && typeof value === 'object') Object.values(value).forEach(walk);
  };
  walk(ep.notes);
  return parts.join('\n').toLowerCase();
}

async function textsOf(run, n) {
  const name = `${run}-${n}`;
  if (found.has(name)) return found.get(name);
  const texts = (await block(run, n)).map(readable);
  const size = texts.reduce((total, t) => total + t.length, 0);
  if (used + size < ROOM) {
    used += size;
    found.set(name, texts);
  }
  return texts;
}

function search(value) {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(() => runSearch(value).catch(showError), 180);
}

async function runSearch(value) {
  const mine = ++searchNumber;
  const query = value.trim().toLowerCase();
  filter.query = wanted.query = query;
  const bar = $('searching');
  if (!query) {
    hits = null;
    bar.hidden = true;
    return void (drawList(), redraw());
  }
  const result = new Set();
  all.forEach((i) => anyOf(i, (row) => row.key.toLowerCase().includes(query)) && result.add(i));
  const places = new Map(); // "run-block" -> rows in it
  runs.forEach((run, r) =>
    run.rows.forEach((row, i) => {
      const name = `${r}-${row.b}`;
      if (!places.has(name)) places.set(name, { r, b: row.b, rows: [] });
      places.get(name).rows.push([i, row.p]);
    }),
  );
  bar.hidden = false;
  let done = 0,
    drawn = performance.now();
  for (const { r, b, rows } of places.values()) {
    const texts = await textsOf(r, b);
    if (mine !== searchNumber) return; // typed on meanwhile
    for (const [i, p] of rows) if (texts[p].includes(query)) result.add(i);
    bar.value = ++done / places.size;
    if (performance.now() - drawn > 400) {
      hits = result;
      drawList();
      await new Promise((resolve) => setTimeout(resolve));
      drawn = performance.now();
      if (mine !== searchNumber) return;
    }
  }
  bar.hidden = true;
  hits = result;
  drawList();
  redraw();
}
