'use strict'
// A flying-squid server with the world of `generator.js` and the rules of `rules.js`, on a loopback port of its own.
// By hand, to walk about with a Minecraft 1.16.5 client in offline mode:  node server.js [seed] [size] [port]

const registryOf = require('prismarine-registry')
const chunkOf = require('prismarine-chunk')
const generator = require('./generator')
const { Rules } = require('./rules')

const VERSION = '1.16.5'
const HOST = '127.0.0.1'
const VIEW = 4 // chunks
const NEVER = 2 ** 31 - 1

/**
 * @param {{seed, size, spawn, animals, items, port}} options
 * @returns {Promise<{serv, port, plan, rules, start, registry}>} once it listens
 */
async function start ({ seed, size, spawn, animals = {}, items = [], port = 0 }) {
  const { createMCServer } = require('flying-squid')
  const registry = registryOf(VERSION)
  const plan = generator.plan({ seed, size })
  const begin = generator.spawn(plan, spawn)
  const make = generator.chunks(plan, registry, chunkOf(registry))
  const serv = createMCServer({
    motd: 'agentexp',
    host: HOST,
    port,
    version: VERSION,
    'online-mode': false,
    'max-players': 8,
    'max-entities': 2000,
    'view-distance': VIEW,
    'player-list-text': { header: { text: '' }, footer: { text: '' } },
    'everybody-op': false,
    gameMode: 0,
    difficulty: 0,
    generation: { name: 'superflat', options: { seed } },
    plugins: {},
    logging: false,
    noConsoleOutput: true,
    modpe: false,
    keepAlive: false,
    kickTimeout: NEVER,
    checkTimeoutInterval: NEVER
  })
  await new Promise((resolve, reject) => {
    let waiting = 2
    const done = () => { if (--waiting === 0) resolve() }
    serv.once('listening', given => { port = given; done() })
    serv.once('pluginsReady', done)
    serv.once('error', reject)
  })
  serv.on('error', error => process.stderr.write(`server: ${error.stack || error}\n`))
  // The plugin made a superflat world; ours takes its place. Its columns stay when nobody is near: they are never stored.
  const World = require('prismarine-world')(VERSION)
  const features = { blockEntityData: serv.overworld.blockEntityData, portals: serv.overworld.portals }
  serv.overworld = Object.assign(new World((x, z) => make(x, z)), features)
  serv.overworld.unloadColumn = () => {}
  const rules = new Rules({ serv, plan, registry, begin, items, view: VIEW })
  serv.stopTickInterval() // time passes with the body's ticks
  for (const [name, count] of Object.entries(animals)) for (let i = 0; i < count; i++) rules.scatter(name)
  return { serv, port, plan, rules, begin, registry }
}

if (require.main === module) {
  const [seed = 0, size = 128, port = 25565] = process.argv.slice(2).map(Number)
  start({ seed, size, spawn: 'near_centre', animals: { cow: 6, sheep: 6 }, items: ['bucket', 'diamond_sword'], port }).then(({ rules, port }) => {
    setInterval(() => rules.tick(), 50)
    process.stdout.write(`listening on ${HOST}:${port} (Minecraft ${VERSION}, offline mode)\n`)
  })
}

module.exports = { start, HOST, VERSION }
