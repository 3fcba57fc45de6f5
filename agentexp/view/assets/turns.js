// The turns of a conversation as elements: what the model said, what was made of it, what the world answered.

// "Thought:" and the like in bold; everything stays text.
function reply(value) {
  const box = h('div', { class: 'pre' });
  const parts = String(value).split(/^(\s*(?:Thought|Think|Action|Map|Answer|Plan)\s*:|<\/?(?:think|answer|map|action)>)/im);
  parts.forEach((part, i) => box.append(...(i % 2 ? [h('b', { class: 'label' }, text(part))] : text(part))));
  return box;
}

const FLAG_WORDS = { ok: '', invalid: 'unreadable reply', truncated: 'reply cut off', ambiguous: 'ambiguous action' };
const chip = (label, className = '', title = null) => h('span', { class: `chip ${className}`, title }, label);

function turnHead(who, side, aside) {
  return h('header', {}, h('span', { class: 'who' }, who), side, aside && h('span', { class: 'aside' }, aside));
}

function eventView(event, hits) {
  if (event.type === 'system' || event.repeated || (event.type !== 'start' && event.text?.length > 700)) {
    const name = { system: 'System prompt', prompt: 'Prompt', start: 'World · start', put: 'Put into the model’s mouth' }[
      event.type
    ];
    if (name) {
      const again = event.repeated ? ' · the same as before' : '';
      return h(
        'article',
        { class: `turn ${event.type}` },
        fold(`${name} · ${fmt.int(event.text.length)} characters${again}`, event.text),
      );
    }
  }
  if (event.type === 'model') return modelView(event);
  if (event.type === 'world') return worldView(event, hits);
  const who = { start: 'World · start', prompt: 'Prompt', put: 'Put into the model’s mouth', system: 'System prompt' }[
    event.type
  ];
  return h('article', { class: `turn ${event.type}` }, turnHead(who), prose(event.text));
}

function modelView({ call, reply: said, step }) {
  const usage = call.usage || {},
    aside = [];
  if (usage.prompt_tokens || usage.completion_tokens)
    aside.push(`${fmt.int(usage.prompt_tokens)} → ${fmt.int(usage.completion_tokens)} tokens`);
  if (usage.cached_tokens) aside.push(`${fmt.int(usage.cached_tokens)} cached`);
  if (call.seconds) aside.push(fmt.seconds(call.seconds));
  const chips = [];
  if (call.role && call.role !== 'actor') chips.push(chip(call.role));
  if (call.purpose && call.purpose !== 'act') chips.push(chip(call.purpose.replaceAll('_', ' ')));
  if (call === RECALLED)
    chips.push(chip('from an earlier session', '', 'This exploration was made before; its calls are not in this record'));
  if (call.cached) chips.push(chip('from the response cache'));
  if (call.retries) chips.push(chip(fmt.plural(call.retries, 'retry').replace('retrys', 'retries'), 'warn'));
  if (call.finish_reason === 'length') chips.push(chip('cut at the token limit', 'warn'));
  const body = [];
  if (call.reasoning) body.push(fold(`Reasoning · ${fmt.int(call.reasoning.length)} characters`, call.reasoning));
  body.push(
    said === null
      ? h('p', { class: 'quiet' }, 'The reply is not kept in the record.')
      : said.length > 4000
        ? prose(said)
        : reply(said),
  );
  if (call.raw && call.raw !== said)
    body.push(fold(`As received · ${fmt.int(call.raw.length)} characters`, call.raw, { class: 'raw' }));
  const extra = Object.keys(call.info || {}).length ? fold('Details of the call', valueView(call.info)) : null;
  return h(
    'article',
    { class: 'turn model' },
    turnHead('Model', chips, aside.join(' · ')),
    body,
    step && sentView(step),
    extra,
  );
}

// What was made of the reply: the action that was sent, or why none was.
function sentView(step) {
  const line = h('div', { class: 'sent' });
  if (step.action !== null && step.action !== undefined && step.status === 'ok')
    line.append(h('span', { class: 'arrow', 'aria-label': 'sent' }, '→'), h('code', {}, text(step.action)));
  else line.append(chip(FLAG_WORDS[step.status] || step.status, 'bad'), h('span', { class: 'quiet' }, 'nothing was sent'));
  if (step.rewrite) line.append(h('span', { class: 'quiet' }, 'written as ', h('code', {}, text(step.rewrite))));
  for (const flag of step.flags || []) line.append(chip(flag.replaceAll('_', ' '), 'warn'));
  return line;
}

function worldView({ step, t, index, message, alone }, hits) {
  const chips = [];
  if (step.success) chips.push(chip('solved', 'good'));
  else if (step.done) chips.push(chip('world ended', 'warn'));
  if (step.status !== 'ok') chips.push(chip('not sent to the world', 'bad'));
  else if (step.error) chips.push(chip('refused', 'bad', 'The world refused the action or did not understand it'));
  for (const hit of hits(step.phase, t))
    chips.push(chip(`✓ ${hit.kind}: ${hit.name}`, 'good', 'Checkpoint covered for the first time'));
  const aside = [];
  if (step.score) aside.push(`score ${fmt.num(step.score)}`);
  if (step.seconds > 0.0005) aside.push(fmt.seconds(step.seconds));
  const more = message !== null && message.trim() !== step.observation.trim();
  return h(
    'article',
    { class: `turn world${step.error ? ' refused' : ''}`, 'data-step': index, tabindex: '-1' },
    turnHead(`World · ${step.phase} ${t}`, chips, aside.join(' · ')),
    alone && step.action
      ? h('div', { class: 'sent' }, h('span', { class: 'arrow' }, '→'), h('code', {}, text(step.action)), chip('no model call'))
      : null,
    step.observation.trim() ? prose(step.observation) : h('p', { class: 'quiet' }, '(empty answer)'),
    more && fold('As the model read it', message),
    Object.keys(step.info || {}).length ? fold('Details of the step', valueView(step.info)) : null,
  );
}
