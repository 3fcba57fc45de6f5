// Episodes lie in the page as gzip + base64; a block is inflated when one of its episodes is wanted.

const meta = JSON.parse($('meta').textContent);
const runs = meta.runs;
const comparing = meta.mode === 'compare';
const loaded = new Promise((resolve) =>
  document.readyState === 'loading' ? addEventListener('DOMContentLoaded', resolve, { once: true }) : resolve(),
);

const KEPT_BLOCKS = 24;
const inflated = new Map(); // "run-number" -> promise of episodes, newest last

function block(run, n) {
  const name = `${run}-${n}`;
  let found = inflated.get(name);
  inflated.delete(name);
  if (!found) found = inflate(name);
  inflated.set(name, found);
  if (inflated.size > KEPT_BLOCKS) inflated.delete(inflated.keys().next().value);
  return found;
}

async function inflate(name) {
  if (typeof DecompressionStream === 'undefined')
    throw new Error(
      'This browser cannot inflate gzip (DecompressionStream). Use Chrome 80, Firefox 113, Safari 16.4 or newer.',
    );
  await loaded; // the blocks stand at the end of the file
  const binary = atob($(`block-${name}`).textContent);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

const episodeOf = async (run, row) => (await block(run, row.b))[row.p];
