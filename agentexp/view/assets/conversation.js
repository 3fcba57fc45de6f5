// An episode as a conversation: calls and steps of the record put in the order in which they happened.

// -> [{name, steps, events}], one per stretch of a phase. Events:
//    {type: 'system' | 'prompt' | 'start', text, repeated}   what the model was told
//    {type: 'model', call, reply, step}                      what it answered
//    {type: 'world', step, t, index, message}                what the world answered; `message`: as the model read it
function conversation(ep) {
  const stages = [],
    shown = {},
    waiting = {},
    known = new Set(),
    count = {};
  const push = (name, event) => {
    if (!stages.length || stages[stages.length - 1].name !== name) stages.push({ name, steps: 0, first: null, events: [] });
    stages[stages.length - 1].events.push(event);
    return event;
  };
  const world = (index) => {
    const step = ep.trajectory[index];
    count[step.phase] = (count[step.phase] || 0) + 1;
    const event = push(step.phase, { type: 'world', step, index, t: count[step.phase], message: null });
    const stage = stages[stages.length - 1];
    stage.first ??= index;
    stage.steps += 1;
    return event;
  };
  let next = 0;
  const callOf = (index) => ep.trajectory[index].call ?? null;
  const without = (call) => {
    // steps that no model call led to (replays, scripted prefixes)
    while (next < ep.trajectory.length && (callOf(next) === null || callOf(next) < call)) world(next++);
  };
  ep.calls.forEach((call, i) => {
    without(i);
    const messages = ep.chats[call.chat] || [];
    for (let m = shown[call.chat] || 0; m < call.upto && m < messages.length; m++) {
      const { role, content } = messages[m];
      const open = waiting[call.chat];
      if (role === 'user' && open && content.includes(open.step.observation.trim())) {
        open.message = content;
        waiting[call.chat] = null;
        continue;
      }
      const first =
        role === 'user' && call.purpose === 'act' && !messages.slice(0, m).some((earlier) => earlier.role === 'user');
      const type = role === 'user' ? (first ? 'start' : 'prompt') : role === 'system' ? 'system' : 'put';
      push(call.phase, { type, text: content, repeated: known.has(content) });
      known.add(content);
    }
    const kept = messages[call.upto];
    shown[call.chat] = call.upto + (kept && kept.role === 'assistant' ? 1 : 0);
    const event = push(call.phase, {
      type: 'model',
      call,
      index: i,
      reply: kept && kept.role === 'assistant' ? kept.content : (call.raw ?? null),
      step: null,
    });
    while (next < ep.trajectory.length && callOf(next) === i) {
      event.step = ep.trajectory[next];
      waiting[call.chat] = world(next++);
    }
  });
  without(Infinity);
  return stages;
}

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

function eventView(event) {
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
  if (event.type === 'world') return worldView(event);
  const who = { start: 'World · start', prompt: 'Prompt', put: 'Put into the model’s mouth', system: 'System prompt' }[
    event.type
  ];
  return h('article', { class: `turn ${event.type}` }, turnHead(who), prose(event.text));
}

function modelView({ call, reply: said, step }) {
  const usage = call.usage || {};
  const aside = [`${fmt.int(usage.prompt_tokens)} → ${fmt.int(usage.completion_tokens)} tokens`];
  if (usage.cached_tokens) aside.push(`${fmt.int(usage.cached_tokens)} cached`);
  if (call.seconds) aside.push(fmt.seconds(call.seconds));
  const chips = [];
  if (call.role && call.role !== 'actor') chips.push(chip(call.role));
  if (call.purpose && call.purpose !== 'act') chips.push(chip(call.purpose.replaceAll('_', ' ')));
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

function worldView({ step, t, index, message }) {
  const chips = [];
  if (step.success) chips.push(chip('solved', 'good'));
  else if (step.done) chips.push(chip('world ended', 'warn'));
  if (step.status !== 'ok') chips.push(chip('not sent to the world', 'bad'));
  else if (step.error) chips.push(chip('refused', 'bad', 'The world refused the action or did not understand it'));
  const aside = [];
  if (step.score) aside.push(`score ${fmt.num(step.score)}`);
  if (step.seconds > 0.0005) aside.push(fmt.seconds(step.seconds));
  const more = message !== null && message.trim() !== step.observation.trim();
  return h(
    'article',
    { class: `turn world${step.error ? ' refused' : ''}`, 'data-step': index, tabindex: '-1' },
    turnHead(`World · ${step.phase} ${t}`, chips, aside.join(' · ')),
    step.call === undefined && step.action
      ? h('div', { class: 'sent' }, h('span', { class: 'arrow' }, '→'), h('code', {}, text(step.action)), chip('no model call'))
      : null,
    step.observation.trim() ? prose(step.observation) : h('p', { class: 'quiet' }, '(empty answer)'),
    more && fold('As the model read it', message),
    Object.keys(step.info || {}).length ? fold('Details of the step', valueView(step.info)) : null,
  );
}
