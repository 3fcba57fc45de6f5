'use strict'
// The process behind bridge.py: JSON lines in, JSON lines out, one request at a time. One world per process.

const lifeline = require('./lifeline')
lifeline.watch()
const readline = require('readline')
const { PassThrough, Writable } = require('stream')

// Standard input and output are the protocol's; packages that would read commands or write logs there meet these instead.
const [input, output] = [process.stdin, process.stdout]
Object.defineProperty(process, 'stdin', { value: new PassThrough() })
Object.defineProperty(process, 'stdout', { value: new Writable({ write: (chunk, encoding, done) => done() }) })
console.log = console.info = console.warn = console.error
const { Body } = require('./body')
const columns = require('./columns')
const rays = require('./rays')

const RANGE = 40 // blocks that are looked through
const GLANCE = [64, 36] // rays of `look`: pixels are counted in a picture of this size
const WAIT_MS = 20000
const TICK_MS = 50

let world = null

class World {
  constructor (settings) {
    this.settings = settings
    this.pending = new Set() // chunks to be told
    this.told = ''
    this.syncs = 0
    this.waiting = new Set() // what to call when the body is put out
  }

  async start () {
    const { settings } = this
    let [host, port] = ['127.0.0.1', 0]
    if (settings.address) {
      const at = settings.address.lastIndexOf(':')
      host = settings.address.slice(0, at)
      port = Number(settings.address.slice(at + 1))
    } else {
      this.own = await require('./server').start(settings)
      port = this.own.port
    }
    const bot = require('mineflayer').createBot({
      host,
      port,
      username: settings.username,
      auth: 'offline',
      version: settings.version,
      plugins: { physics: false },
      hideErrors: true,
      logErrors: false,
      checkTimeoutInterval: 2 ** 31 - 1,
      brand: 'vanilla'
    })
    this.bot = bot
    this.body = new Body(bot, settings)
    bot.once('end', () => { for (const fail of this.waiting) fail() })
    bot.on('chunkColumnLoad', ({ x, z }) => this.pending.add(`${x >> 4},${z >> 4}`))
    bot.on('blockUpdate', (old, now) => { if (now) this.pending.add(`${now.position.x >> 4},${now.position.z >> 4}`) })
    await this.within(new Promise(resolve => bot.once('spawn', resolve)), 'the body has not entered the world')
    await this.within(this.body.placed, 'the server has not said where the body is')
    const side = settings.size
    const { x, z } = bot.entity.position
    this.origin = this.own ? [0, 0] : [Math.floor(x) - (side >> 1), Math.floor(z) - (side >> 1)]
    this.body.tell(true)
    await this.ground()
    for (let i = 0; i < 20 && !bot.entity.onGround; i++) await this.tick({})
    if (this.own) { // only now: the server says more than once where the body is
      bot.entity.yaw = this.own.begin.yaw
      await this.tick({})
    }
    if (!this.own) this.idle()
  }

  /** The server of a user keeps its own time: the body's ticks go on while nobody asks. */
  idle () {
    this.last = Date.now()
    this.timer = setInterval(() => { if (!this.busy && Date.now() - this.last >= TICK_MS) this.beat({}) }, TICK_MS)
  }

  beat (control) {
    this.last = Date.now()
    this.body.tick(control)
  }

  async within (promise, problem) {
    let timer
    let fail
    const failed = new Promise((resolve, reject) => {
      fail = () => reject(new Error(`${problem} (${this.body.stopped || 'no answer'})`))
      timer = setTimeout(fail, WAIT_MS)
      this.waiting.add(fail)
    })
    try {
      return await Promise.race([promise, failed])
    } finally {
      clearTimeout(timer)
      this.waiting.delete(fail)
    }
  }

  /** Both sides have handled what was sent before. */
  sync () {
    const { SYNC } = require('./rules')
    const number = String(++this.syncs)
    const client = this.bot._client
    return this.within(new Promise(resolve => {
      const listener = ({ channel, data }) => {
        if (channel !== SYNC || data.toString() !== number) return
        client.removeListener('custom_payload', listener)
        resolve()
      }
      client.on('custom_payload', listener)
      client.write('custom_payload', { channel: SYNC, data: Buffer.from(number) })
    }), 'the server did not answer')
  }

  /** Wait for the chunks about the body. */
  async ground () {
    const { bot } = this
    const reach = this.own ? 1 : 0
    const missing = () => {
      const [cx, cz] = [Math.floor(bot.entity.position.x) >> 4, Math.floor(bot.entity.position.z) >> 4]
      for (let i = -reach; i <= reach; i++) for (let j = -reach; j <= reach; j++) if (!bot.world.getColumn(cx + i, cz + j)) return true
      return false
    }
    if (!missing()) return
    await this.within(new Promise(resolve => {
      const look = () => {
        if (missing()) return
        bot.removeListener('chunkColumnLoad', look)
        resolve()
      }
      bot.on('chunkColumnLoad', look)
    }), 'the chunks about the body did not arrive')
  }

  async tick (control) {
    if (this.body.stopped) throw new Error(`the body has left the world (${this.body.stopped})`)
    if (this.own) {
      this.body.tick(control)
      await this.sync()
      this.own.rules.tick()
      await this.ground()
    } else {
      const wait = this.last === undefined ? 0 : this.last + TICK_MS - Date.now()
      if (wait > 0) await new Promise(resolve => setTimeout(resolve, wait))
      this.beat(control)
    }
  }

  async act ({ ticks = 1, turn = 0, look = 0, forward, jump, attack, use, see }) {
    this.busy = true
    try {
      for (let i = 0; i < ticks; i++) await this.tick({ forward, jump, attack, use, turn: turn / ticks, look: look / ticks })
    } finally {
      this.busy = false
    }
    return { ...this.state(), ...(see ? { seen: this.look() } : {}) }
  }

  state () {
    const { bot, body } = this
    const { position, yaw, pitch, onGround, isInWater, isCollidedHorizontally } = bot.entity
    body.states.fresh()
    const target = body.target()
    const state = {
      position: [position.x, position.y, position.z],
      yaw,
      pitch,
      ground: onGround,
      water: Boolean(isInWater),
      collided: Boolean(isCollidedHorizontally),
      health: bot.health,
      food: bot.food,
      target: target ? { name: target.name, distance: target.far, mob: Boolean(target.entity) } : null
    }
    const inventory = body.inventory()
    const text = JSON.stringify(inventory)
    if (text !== this.told) Object.assign(state, { inventory })
    this.told = text
    const news = this.columns()
    if (news.length) state.columns = news
    return state
  }

  columns () {
    const { bot, body, origin, settings } = this
    const found = []
    for (const key of this.pending) {
      const [x, z] = key.split(',').map(Number)
      const column = bot.world.getColumn(x, z)
      const near = x * 16 + 32 > origin[0] && z * 16 + 32 > origin[1] && x * 16 - 16 < origin[0] + settings.size && z * 16 - 16 < origin[1] + settings.size
      if (column && near) found.push(columns.ground(body.states, x, z, columns.highest(column)))
    }
    this.pending.clear()
    return found
  }

  glance ([width, height]) {
    const { body, bot } = this
    body.states.fresh()
    const view = { width, height, angle: this.settings.angle, range: RANGE }
    return rays.cast(body.states, body.eye(), bot.entity.yaw, bot.entity.pitch, body.things(), view)
  }

  look () {
    return rays.summary(this.body.states, this.glance(GLANCE), this.body.eye())
  }

  truth () {
    if (!this.own) return { things: this.body.things().map(({ name, x, y, z }) => ({ name, x, y, z })) }
    const { rules, plan } = this.own
    const sync = this.own.serv.overworld.sync
    const make = []
    for (let x = -1; x * 16 < plan.size + 16; x++) for (let z = -1; z * 16 < plan.size + 16; z++) make.push([x, z])
    return Promise.all(make.map(([x, z]) => this.own.serv.overworld.getColumn(x, z))).then(() => {
      rules.states.fresh()
      return { things: rules.things(), columns: make.map(([x, z]) => columns.ground(rules.states, x, z, columns.highest(sync.getColumn(x, z)))) }
    })
  }

  command ({ text, values }) {
    const wrong = message => Object.assign(new Error(message), { user: true })
    const { rules, serv } = this.own || {}
    if (!rules) throw wrong('the server is not ours')
    if (text === 'spawn') for (let i = 0; i < (values.count || 1); i++) rules.spawn(values.name, values.x, values.z, values.stay)
    else if (text === 'give') {
      if (!this.bot.registry.itemsByName[values.name]) throw wrong(`there is no item ${values.name}`)
      rules.give(serv.players[0], values.name, values.count || 1)
    } else if (text === 'time') serv.setTime(values.ticks)
    else throw wrong(`the voxel world knows no command ${JSON.stringify(text)}; choose spawn, give or time`)
    return this.sync()
  }

  async picture ({ chromium }) {
    const { Viewer } = require('./viewer')
    if (!this.viewer) this.viewer = new Viewer(this.bot, chromium, this.settings)
    return { png: await this.viewer.picture() }
  }

  close () {
    if (this.viewer) this.viewer.close()
  }
}

const OPS = {
  async reset (request) {
    if (world) throw new Error('this process has a world already')
    world = new World(request)
    await world.start()
    return { ...world.state(), origin: world.origin, versions: versions(request) }
  },
  act: request => world.act(request),
  look: () => ({ seen: world.look() }),
  rays: () => ({ size: world.settings.picture, rgb: rays.paint(world.body.states, world.glance(world.settings.picture), RANGE) }),
  picture: request => world.picture(request),
  port: () => ({ port: world.own ? world.own.port : null }),
  truth: () => world.truth(),
  command: async request => { await world.command(request); return {} }
}

function versions ({ version }) {
  const of = name => require(`${name}/package.json`).version
  const packages = ['flying-squid', 'mineflayer', 'prismarine-viewer', 'minecraft-data']
  return { node: process.versions.node, minecraft: version, ...Object.fromEntries(packages.map(name => [name, of(name)])) }
}

function end (code) {
  if (world) world.close()
  if (code === 0) lifeline.leave()
  process.exit(code)
}

async function main () {
  const lines = readline.createInterface({ input })
  lines.on('close', () => end(0))
  let queue = Promise.resolve()
  lines.on('line', line => {
    queue = queue.then(async () => {
      const { id, op, ...request } = JSON.parse(line)
      let answer
      try {
        if (!OPS[op]) throw new Error(`unknown request ${op}`)
        if (!world && op !== 'reset') throw new Error('there is no world yet')
        answer = await OPS[op](request)
      } catch (error) {
        if (!error.user) process.stderr.write(`${error.stack}\n`)
        answer = { error: error.message, user: Boolean(error.user) }
      }
      output.write(JSON.stringify({ id, ...answer }) + '\n')
    })
  })
}

process.on('uncaughtException', error => {
  process.stderr.write(`${error.stack}\n`)
  end(70)
})
main()
