'use strict'
// The agent's body: a mineflayer bot whose ticks are driven from outside. mineflayer's own physics plugin runs on a timer, so it
// is left out and its part is done here: simulate, tell the server, obey the server's corrections.

const { Physics, PlayerState } = require('prismarine-physics')
const { Vec3 } = require('vec3')
const { States, AIR, GROUND } = require('./blocks')
const { EYE, march, meets } = require('./rays')

const BLOCK_REACH = 4.5
const MOB_REACH = 3
const SWING_TICKS = 13 // between two blows, so that each has its full strength
const USE_TICKS = 4
const FACES = { y: [1, 0], z: [3, 2], x: [5, 4] } // of the block face that a ray meets, by axis: coming from above, from below ...
const RIGHT = Math.PI / 2

class Body {
  /** @param bot a mineflayer bot made without its physics plugin */
  constructor (bot, { autoJump = true } = {}) {
    this.bot = bot
    this.autoJump = autoJump
    this.stopped = null
    this.digging = null
    this.sinceBlow = SWING_TICKS
    this.sinceUse = USE_TICKS
    this.wasAttacking = false
    this.placed = new Promise(resolve => { this.onPlaced = resolve })
    bot.jumpTicks = 0
    bot.jumpQueued = false
    bot.fireworkRocketDuration = 0
    bot.getControlState = () => false // what other plugins ask of the one that is left out: nothing is held down but what we hold
    bot.setControlState = () => {}
    bot.clearControlStates = () => {}
    bot._client.on('position', packet => this.moved(packet))
    bot._client.on('explosion', ({ playerMotionX: x, playerMotionY: y, playerMotionZ: z }) => bot.entity.velocity.add(new Vec3(x || 0, y || 0, z || 0)))
    for (const event of ['kicked', 'error', 'end']) bot.once(event, reason => { this.stopped = this.stopped || `${event}: ${text(reason)}` })
    bot.once('login', () => this.start())
  }

  start () {
    const { bot } = this
    this.states = new States(bot.world, bot.registry)
    this.world = { getBlock: at => bot.blockAt(at, false) }
    this.physics = Physics(bot.registry, this.world)
    bot.physics = this.physics
  }

  /** The server says where we are. */
  moved (packet) {
    const { entity } = this.bot
    const relative = flag => typeof packet.flags === 'object' ? packet.flags[flag[0]] : packet.flags & flag[1]
    const p = entity.position
    p.set(
      packet.x + (relative(['x', 1]) ? p.x : 0),
      packet.y + (relative(['y', 2]) ? p.y : 0),
      packet.z + (relative(['z', 4]) ? p.z : 0)
    )
    entity.velocity.set(0, 0, 0)
    const yaw = packet.yaw + (relative(['yaw', 8]) ? notchianYaw(entity.yaw) : 0)
    const pitch = packet.pitch + (relative(['pitch', 16]) ? notchianPitch(entity.pitch) : 0)
    entity.yaw = Math.PI - yaw * Math.PI / 180
    entity.pitch = -pitch * Math.PI / 180
    entity.onGround = false
    if (packet.teleportId !== undefined) this.bot._client.write('teleport_confirm', { teleportId: packet.teleportId })
    this.tell(true)
    this.bot.emit('forcedMove')
    this.onPlaced()
  }

  /** Tell the server where we are; everything when asked to, else what has changed. */
  tell (all = false) {
    const { entity, _client: client } = this.bot
    const { x, y, z } = entity.position
    const [yaw, pitch, onGround] = [notchianYaw(entity.yaw), notchianPitch(entity.pitch), entity.onGround]
    const flags = { onGround, hasHorizontalCollision: false }
    const last = this.told || {}
    const went = all || x !== last.x || y !== last.y || z !== last.z
    const turned = all || yaw !== last.yaw || pitch !== last.pitch
    const packet = { x, y, z, yaw, pitch, onGround, flags }
    if (went && turned) client.write('position_look', packet)
    else if (went) client.write('position', packet)
    else if (turned) client.write('look', packet)
    else client.write('flying', { onGround, flags })
    this.told = { x, y, z, yaw, pitch }
    if (went || turned) this.bot.emit('move', entity.position)
  }

  eye () {
    const { x, y, z } = this.bot.entity.position
    return { x, y: y + EYE, z }
  }

  /** Mobs and lying items that the client knows of. */
  things () {
    const { bot } = this
    return Object.values(bot.entities).filter(entity => entity !== bot.entity && entity.isValid !== false && entity.name).map(entity => ({
      id: entity.id,
      name: entity.name === 'item' ? `item:${itemName(bot, entity)}` : entity.name,
      item: entity.name === 'item',
      entity,
      x: entity.position.x,
      y: entity.position.y,
      z: entity.position.z,
      width: entity.width || 0.6,
      height: entity.height || 1
    }))
  }

  /** What the crosshair is on: {entity} or {block} with `far`, or null. */
  target () {
    const { yaw, pitch } = this.bot.entity
    const ray = { x: -Math.sin(yaw) * Math.cos(pitch), y: Math.sin(pitch), z: -Math.cos(yaw) * Math.cos(pitch) }
    const eye = this.eye()
    const block = march(this.states, eye, ray, BLOCK_REACH, AIR)
    let best = block && { ...block, block: true, name: this.states.name(block.state), ray }
    for (const thing of this.things()) {
      if (thing.item) continue
      const far = meets(thing, eye, ray)
      if (far <= MOB_REACH && (!best || far < best.far)) best = { entity: thing.entity, name: thing.name, far }
    }
    return best
  }

  hold (pattern) {
    const { bot } = this
    const slot = [...Array(9).keys()].find(i => bot.inventory.slots[36 + i] && pattern.test(bot.inventory.slots[36 + i].name))
    if (slot !== undefined && slot !== bot.quickBarSlot) bot.setQuickBarSlot(slot)
  }

  attack (target) {
    const { bot } = this
    if (target && target.entity) {
      this.giveUpDigging()
      if (this.sinceBlow < SWING_TICKS) return
      this.hold(/_(sword|axe)$/)
      this.sinceBlow = 0
      bot.attack(target.entity)
    } else if (target && target.block) {
      const at = new Vec3(target.x, target.y, target.z)
      if (!this.digging || !this.digging.at.equals(at)) {
        this.giveUpDigging()
        const block = bot.blockAt(at)
        const ms = bot.digTime(block)
        if (!Number.isFinite(ms)) return
        const face = FACES[target.axis][target.ray[target.axis] < 0 ? 0 : 1]
        this.digging = { at, face, left: Math.max(1, Math.ceil(ms / 50)) }
        bot._client.write('block_dig', { status: 0, location: at, face, sequence: 0 })
        bot.swingArm()
        if (ms === 0) this.digging = null // broke at once
        return
      }
      if (--this.digging.left > 0) return
      bot._client.write('block_dig', { status: 2, location: at, face: this.digging.face, sequence: 0 })
      this.digging = null
    } else {
      this.giveUpDigging()
      if (!this.wasAttacking) bot.swingArm()
    }
  }

  giveUpDigging () {
    if (!this.digging) return
    const { at, face } = this.digging
    this.bot._client.write('block_dig', { status: 1, location: at, face, sequence: 0 })
    this.digging = null
  }

  use (target) {
    if (this.sinceUse < USE_TICKS) return
    this.sinceUse = 0
    this.hold(/^bucket$/)
    this.bot.activateItem()
  }

  /** A step of one block ahead that can be jumped onto. */
  stepAhead () {
    const { entity } = this.bot
    if (!entity.onGround || !entity.isCollidedHorizontally) return false
    const [dx, dz] = [-Math.sin(entity.yaw), -Math.cos(entity.yaw)]
    const feet = Math.floor(entity.position.y + 0.01)
    const solid = (x, y, z) => {
      const state = this.states.get(Math.floor(x), y, Math.floor(z))
      return state > 0 && this.states.classes[state] >= GROUND
    }
    const { x, z } = entity.position
    if (solid(x, feet + 2, z)) return false
    return [[dx, dz], [Math.sign(dx), 0], [0, Math.sign(dz)]].some(([ax, az]) => {
      const [ahead, beside] = [x + 0.75 * ax, z + 0.75 * az]
      return solid(ahead, feet, beside) && !solid(ahead, feet + 1, beside) && !solid(ahead, feet + 2, beside)
    })
  }

  /** One tick. `turn` and `look` in degrees, clockwise and down. */
  tick ({ forward = 0, turn = 0, look = 0, jump = false, attack = false, use = false } = {}) {
    const { bot } = this
    const { entity } = bot
    entity.yaw = wrap(entity.yaw - turn * Math.PI / 180)
    entity.pitch = Math.min(RIGHT, Math.max(-RIGHT, entity.pitch - look * Math.PI / 180))
    this.states.fresh()
    this.sinceBlow++
    this.sinceUse++
    const target = attack || use ? this.target() : null
    if (attack) this.attack(target)
    else this.giveUpDigging()
    if (use) this.use(target)
    this.wasAttacking = attack
    if (bot.world.getColumnAt(entity.position)) { // nothing is known of the ground otherwise
      const hop = this.autoJump && forward > 0 && (entity.isInWater || this.stepAhead())
      const control = { forward, back: 0, left: 0, right: 0, jump: jump || hop, sprint: false, sneak: false }
      this.physics.simulatePlayer(new PlayerState(bot, control), this.world).apply(bot)
    }
    this.tell()
  }

  inventory () {
    const counts = {}
    for (const item of this.bot.inventory.items()) counts[item.name] = (counts[item.name] || 0) + item.count
    return counts
  }
}

function itemName (bot, entity) {
  const item = typeof entity.getDroppedItem === 'function' ? entity.getDroppedItem() : null
  return item ? item.name : 'unknown'
}

function notchianYaw (yaw) {
  return (Math.PI - yaw) * 180 / Math.PI
}

function notchianPitch (pitch) {
  return -pitch * 180 / Math.PI
}

function wrap (angle) {
  return angle - 2 * Math.PI * Math.floor((angle + Math.PI) / (2 * Math.PI))
}

function text (reason) {
  return reason instanceof Error ? reason.message : typeof reason === 'string' ? reason : JSON.stringify(reason)
}

module.exports = { Body }
