// Small charts in SVG, drawn with the page's colours.

// Interval on a rail from 0 to 1, with the point estimate.
function rail(rate, interval, className = '') {
  const x = (value) => 2 + 96 * value;
  const label = rate === null ? 'no rate' : `${fmt.percent(rate)}, 95 % interval ${fmt.range(interval)}`;
  return s(
    'svg',
    { class: `rail ${className}`, viewBox: '0 0 100 12', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    s('title', {}, label),
    s('line', { x1: x(0), x2: x(1), y1: 6, y2: 6, class: 'track' }),
    [0, 0.5, 1].map((t) => s('line', { x1: x(t), x2: x(t), y1: 4, y2: 8, class: 'track' })),
    interval &&
      s('rect', {
        x: x(interval[0]),
        width: Math.max(1, x(interval[1]) - x(interval[0])),
        y: 3.5,
        height: 5,
        rx: 1,
        class: 'band',
      }),
    rate !== null && s('rect', { x: x(rate) - 0.6, width: 1.2, y: 1, height: 10, class: 'point' }),
  );
}

// Stop trace of the mapping phase: new knowledge per step above, novelty of what was seen below.
function stopTrace(trace, stop, stopping) {
  const epsilon = stopping && typeof stopping.epsilon === 'number' ? stopping.epsilon : null;
  const step = Math.max(18, Math.min(44, 640 / trace.length));
  const left = 34,
    width = left + step * trace.length + 12,
    top = 22,
    high = 64,
    gap = 30,
    low = 64;
  const base = top + high,
    top2 = base + gap,
    base2 = top2 + low;
  const most = Math.max(1, ...trace.map((r) => r.delta_k));
  const x = (i) => left + step * (i + 0.5);
  const y = (value) => base2 - low * value;
  const path = (key) => trace.map((r, i) => `${i ? 'L' : 'M'}${x(i).toFixed(1)} ${y(r[key]).toFixed(1)}`).join(' ');
  const every = Math.ceil(trace.length / 24);
  const svg = s(
    'svg',
    {
      class: 'trace',
      viewBox: `0 0 ${width} ${base2 + 46}`,
      width,
      height: base2 + 46,
      role: 'img',
      'aria-label': `Stop trace over ${trace.length} steps; the numbers are in the table below`,
    },
    s('text', { x: 0, y: 10, class: 'axis' }, 'ΔK  new facts per step'),
    s('text', { x: left - 6, y: top + 4, class: 'tick end' }, most),
    s('text', { x: left - 6, y: base + 3, class: 'tick end' }, 0),
    s('line', { x1: left, x2: width - 8, y1: base, y2: base, class: 'track' }),
    s('text', { x: 0, y: top2 - 6, class: 'axis' }, 'r(o)  novelty of the observation'),
    [0, 0.5, 1].map((t) => [
      s('text', { x: left - 6, y: y(t) + 3, class: 'tick end' }, t),
      s('line', { x1: left, x2: width - 8, y1: y(t), y2: y(t), class: 'track faint' }),
    ]),
    epsilon !== null && s('line', { x1: left, x2: width - 8, y1: y(epsilon), y2: y(epsilon), class: 'epsilon' }),
    trace.map((r, i) => {
      const tall = (high * r.delta_k) / most;
      return s(
        'g',
        { class: 'hover' },
        s('title', {}, traceLine(r)),
        s('rect', { x: x(i) - step / 2, y: top - 6, width: step, height: base2 - top + 30, class: 'slot' }),
        r.delta_k > 0
          ? s('rect', { x: x(i) - step * 0.32, width: step * 0.64, y: base - tall, height: tall, rx: 1.5, class: 'bar' })
          : s('circle', { cx: x(i), cy: base - 3, r: 1.6, class: 'zero' }),
        i % every === 0 && s('text', { x: x(i), y: base2 + 14, class: 'tick mid' }, r.t),
        r.cond_a && s('rect', { x: x(i) - step * 0.36, width: step * 0.72, y: base2 + 21, height: 5, class: 'cond a' }),
        r.cond_b && s('rect', { x: x(i) - step * 0.36, width: step * 0.72, y: base2 + 35, height: 5, class: 'cond b' }),
      );
    }),
    s('text', { x: left - 6, y: base2 + 27, class: 'tick end' }, 'A'),
    s('text', { x: left - 6, y: base2 + 41, class: 'tick end' }, 'B'),
    s('path', { d: path('window_mean'), class: 'line mean' }),
    s('path', { d: path('novelty'), class: 'line' }),
    trace.map((r, i) => s('circle', { cx: x(i), cy: y(r.novelty), r: 2.6, class: 'dot' })),
  );
  const why =
    stop && stop.reason
      ? `Mapping ended after ${fmt.plural(stop.t, 'step')}: ${stop.reason}; ${fmt.int(stop.known)} facts known.`
      : '';
  return h(
    'figure',
    { class: 'figure' },
    why && h('figcaption', {}, why),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Stop trace' }, svg),
    h(
      'ul',
      { class: 'legend' },
      h('li', {}, h('i', { class: 'key bar' }), 'ΔK'),
      h('li', {}, h('i', { class: 'key solid' }), 'novelty 1/√N(o)'),
      h('li', {}, h('i', { class: 'key dashed' }), 'window mean'),
      epsilon !== null && h('li', {}, h('i', { class: 'key dotted' }), `ε = ${epsilon}`),
      h('li', {}, 'A: nothing new learnt · B: nothing new seen'),
    ),
    fold(
      'Numbers',
      table(
        ['#t', '#|M|', '#ΔK', '#novelty', '#window mean', 'A', 'B', 'reason'],
        trace.map((r) => [
          r.t,
          r.known,
          r.delta_k,
          fmt.num(r.novelty, 3),
          fmt.num(r.window_mean, 3),
          r.cond_a ? 'yes' : '',
          r.cond_b ? 'yes' : '',
          r.reason || '',
        ]),
      ),
    ),
  );
}

const traceLine = (r) =>
  `step ${r.t}: ΔK ${r.delta_k}, |M| ${r.known}, novelty ${fmt.num(r.novelty, 3)}, mean ${fmt.num(r.window_mean, 3)}${r.reason ? ', ' + r.reason : ''}`;

// Share of the checkpoints covered after each step.
function coverageCurve(hit, total) {
  const last = hit[hit.length - 1].step;
  const x = (step) => 40 + (step / Math.max(1, last)) * 414;
  const y = (share) => 92 - 80 * share;
  let path = `M${x(0)} ${y(0)}`;
  hit.forEach((c, i) => {
    path += ` H${x(c.step).toFixed(1)} V${y((i + 1) / total).toFixed(1)}`;
  });
  const label = `Coverage by step: ${fmt.percent(hit.length / total)} after step ${last}`;
  return s(
    'svg',
    { class: 'trace coverage', viewBox: '0 0 470 112', role: 'img', 'aria-label': label },
    s('title', {}, label),
    [0, 0.5, 1].map((t) => [
      s('text', { x: 35, y: y(t) + 3, class: 'tick end' }, `${100 * t} %`),
      s('line', { x1: 40, x2: 454, y1: y(t), y2: y(t), class: 'track faint' }),
    ]),
    [0, last].map((step) => s('text', { x: x(step), y: 108, class: 'tick mid' }, step)),
    s('path', { d: path, class: 'line covered' }),
  );
}
