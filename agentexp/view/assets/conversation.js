// An episode as a conversation: calls and steps of the record put in the order in which they happened.

const RECALLED = {}; // stands for the calls of a chat that was taken over from an earlier session

// -> [{name, steps, first, events}], one per stretch of a phase. Events:
//    {type: 'system' | 'prompt' | 'start' | 'put', text, repeated}   what the model was told
//    {type: 'model', call, reply, step}                              what it answered
//    {type: 'world', step, t, index, message, alone}                 what the world answered; `message`: as the model read it,
//                                                                    `alone`: no reply led to it
function conversation(ep) {
  const stages = [],
    known = new Set(),
    count = {};
  const chats = {}; // by name: how many messages were shown, and the world's answer that waits for its message
  for (const [name, messages] of Object.entries(ep.chats)) chats[name] = { messages, shown: 0, waiting: null };
  const called = new Set(ep.calls.map((call) => call.chat));
  let next = 0; // step of the trajectory that is not shown yet

  const push = (phase, event) => {
    if (!stages.length || stages[stages.length - 1].name !== phase)
      stages.push({ name: phase, steps: 0, first: null, events: [] });
    const stage = stages[stages.length - 1];
    stage.events.push(event);
    if (event.type === 'world') {
      stage.first ??= event.index;
      stage.steps += 1;
    }
    return event;
  };

  const world = (alone = false) => {
    const index = next++,
      step = ep.trajectory[index];
    count[step.phase] = (count[step.phase] || 0) + 1;
    return push(step.phase, { type: 'world', step, index, t: count[step.phase], message: null, alone });
  };

  // Messages of a chat up to a reply. What the world answered last is not shown twice.
  const tell = (chat, upto, phase, acts) => {
    for (; chat.shown < upto && chat.shown < chat.messages.length; chat.shown++) {
      const { role, content } = chat.messages[chat.shown];
      const open = chat.waiting;
      if (role === 'user' && open && content.includes(open.step.observation.trim())) {
        open.message = content;
        chat.waiting = null;
        continue;
      }
      const start = acts && !chat.messages.slice(0, chat.shown).some((earlier) => earlier.role === 'user');
      const type = { user: start ? 'start' : 'prompt', system: 'system' }[role] || 'put';
      push(phase, { type, text: content, repeated: known.has(content) });
      known.add(content);
    }
  };

  // Steps without a call: recalled ones, whose chat is there with nothing that calls it, and replays, which have no reply.
  const recall = (phase) => {
    const found = Object.entries(chats).find(
      ([name, chat]) =>
        !called.has(name) &&
        name.replace(/\.\d+$/, '') === phase &&
        chat.messages.slice(chat.shown).some((m) => m.role === 'assistant'),
    );
    if (!found) return void world(true);
    const chat = found[1];
    tell(
      chat,
      chat.messages.findIndex((m, i) => i >= chat.shown && m.role === 'assistant'),
      phase,
      true,
    );
    push(phase, { type: 'model', call: RECALLED, reply: chat.messages[chat.shown++].content, step: ep.trajectory[next] });
    chat.waiting = world();
  };
  const callOf = (index) => ep.trajectory[index].call ?? null;
  const before = (call) => {
    while (next < ep.trajectory.length && (callOf(next) === null || callOf(next) < call)) recall(ep.trajectory[next].phase);
  };

  ep.calls.forEach((call, i) => {
    before(i);
    const chat = chats[call.chat] || { messages: [], shown: 0, waiting: null };
    tell(chat, call.upto, call.phase, call.purpose === 'act');
    const kept = chat.messages[call.upto];
    const said = kept && kept.role === 'assistant' ? kept.content : null;
    chat.shown = call.upto + (said === null ? 0 : 1);
    const event = push(call.phase, { type: 'model', call, reply: said ?? call.raw ?? null, step: null });
    while (next < ep.trajectory.length && callOf(next) === i) {
      event.step = ep.trajectory[next];
      chat.waiting = world();
    }
  });
  before(Infinity);
  return stages;
}
