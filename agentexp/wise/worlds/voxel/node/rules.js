'use strict'
// The rules that the server lacks, counted in ticks: digging, drops, picking up, hitting, filling a bucket, animals that walk.
// Numbers are the game's (Minecraft Wiki) where nothing else is said.

const { Vec3 } = require('vec3')
const { random } = require('./noise')
const { States, WATER, GROUND, THING } = require('./blocks')
const { march, EYE } = require('./rays')

const SYNC = 'agentexp:sync'
const REACH = 4.5
const PICKUP_TICKS = 10
const PICKUP_BLOCKS = 1.425
const ITEM_TICKS = 6000
const DAMAGE = { diamond_sword: 7, iron_sword: 6, stone_sword: 5, wooden_sword: 4, golden_sword: 4, diamond_axe: 9, iron_axe: 9 }
const HEALTH = { cow: 10, sheep: 8, pig: 10, chicken: 4, rabbit: 3, horse: 20, wolf: 8, zombie: 20 }
const SWORD_TICKS = 12.5 // time to full strength
const WALK = 0.07 // blocks in a tick
const FLEE = 0.14
const FLEE_TICKS = 100

class Rules {
  constructor ({ serv, plan, registry, begin, items, view }) {
    Object.assign(this, { serv, plan, registry, begin, items, view })
    this.ticks = 0
    this.draw = random(plan.seed + 991)
    this.animals = new Map() // by entity id
    this.lying = new Map()
    this.states = new States(serv.overworld.sync, registry)
    this.Item = require('prismarine-item')(registry)
    this.Block = require('prismarine-block')(registry)
    serv.getSpawnPoint = async () => new Vec3(begin.x, begin.y, begin.z)
    serv.on('newPlayer', player => this.join(player))
  }

  join (player) {
    const client = player._client
    player.findSpawnPoint = async () => { player.spawnPoint = new Vec3(this.begin.x, this.begin.y, this.begin.z) }
    player.worldSendRestOfChunks = () => this.chunks(player)
    player.looks = { yaw: 0, pitch: 0 } // the server itself keeps them to 1.4 degrees only
    const look = ({ yaw, pitch }) => Object.assign(player.looks, { yaw, pitch })
    client.on('look', look).on('position_look', look)
    client.on('custom_payload', ({ channel, data }) => { if (channel === SYNC) client.write('custom_payload', { channel, data }) })
    client.removeAllListeners('block_dig')
    client.on('block_dig', packet => this.dig(player, packet))
    client.removeAllListeners('use_entity')
    client.on('use_entity', ({ mouse, target }) => { if (mouse === 1) this.hit(player, target) })
    client.on('use_item', () => this.use(player))
    player.on('spawned', () => this.items.forEach((name, slot) => this.put(player, 36 + slot, name, 1)))
  }

  /** Send the chunks about a player that it has not got, the nearest first; the server's own way pauses 5 ms after each. */
  async chunks (player) {
    player.sendingChunks = true
    player.lastPositionChunkUpdated = player.position
    const [cx, cz] = [Math.floor(player.position.x) >> 4, Math.floor(player.position.z) >> 4]
    for (const key of Object.keys(player.loadedChunks)) {
      const [x, z] = key.split(',').map(Number)
      if (Math.max(Math.abs(x - cx), Math.abs(z - cz)) > this.view + 1) player._unloadChunk(x, z)
    }
    const wanted = []
    for (let x = cx - this.view; x <= cx + this.view; x++) for (let z = cz - this.view; z <= cz + this.view; z++) wanted.push([x, z])
    wanted.sort(([a, b], [c, d]) => Math.hypot(a - cx, b - cz) - Math.hypot(c - cx, d - cz))
    for (const [x, z] of wanted) {
      if (this.serv._worldLoadPlayerChunk(x, z, player)) player.sendChunk(x, z, await player.world.getColumn(x, z))
    }
    player.sendingChunks = false
  }

  // ------------------------------------------------------------------------------------------------------------ items

  held (player) {
    const item = player.inventory.slots[36 + player.heldItemSlot]
    return item ? item.name : null
  }

  put (player, slot, name, count) {
    player.inventory.updateSlot(slot, new this.Item(this.registry.itemsByName[name].id, count))
  }

  /** Into the inventory as far as there is room; whether it all went in. */
  give (player, name, count = 1) {
    const { slots } = player.inventory
    const usable = [...Array(9).keys()].map(i => i + 36).concat([...Array(27).keys()].map(i => i + 9))
    const slot = usable.find(i => slots[i] && slots[i].name === name && slots[i].count + count <= slots[i].stackSize)
    if (slot !== undefined) {
      this.put(player, slot, name, slots[slot].count + count)
      return true
    }
    const free = usable.find(i => !slots[i])
    if (free === undefined) return false
    this.put(player, free, name, count)
    return true
  }

  /** Lay an item on the ground below a place. */
  drop (name, x, y, z, count = 1) {
    const item = this.registry.itemsByName[name]
    x += 0.5 * this.draw() - 0.25
    z += 0.5 * this.draw() - 0.25
    let floor = Math.floor(y)
    while (floor > 0 && this.kind(Math.floor(x), floor - 1, Math.floor(z)) < GROUND) floor--
    let entity
    this.serv.once('newEntity', made => { entity = made })
    this.serv.spawnObject(this.registry.entitiesByName.item.id, this.serv.overworld, new Vec3(x, floor, z), {
      velocity: new Vec3(0, 0, 0), itemId: item.id, itemCount: count
    })
    still(entity)
    this.lying.set(entity.id, { entity, name, count, since: this.ticks })
  }

  loot (list, held) {
    for (const { item, dropChance = 1, stackSizeRange = [1, 1], silkTouch = false } of list || []) {
      if (silkTouch || this.draw() >= dropChance) continue
      const [least, most] = [stackSizeRange[0], stackSizeRange[1] === undefined ? stackSizeRange[0] : stackSizeRange[1]]
      const count = least + Math.floor(this.draw() * (most - least + 1))
      if (count > 0) held(item, count)
    }
  }

  // ----------------------------------------------------------------------------------------------------------- blocks

  kind (x, y, z) {
    const state = this.states.get(x, y, z)
    return state < 0 ? GROUND : this.states.classes[state]
  }

  dig (player, { status, location }) {
    if (status === 0) {
      player.digging = { at: `${location.x},${location.y},${location.z}`, since: this.ticks }
      if (this.digTicks(player, location) <= 1) this.dug(player, location) // such blocks break at the first blow
    } else if (status === 2 && player.digging && player.digging.at === `${location.x},${location.y},${location.z}`) {
      const early = this.ticks - player.digging.since < this.digTicks(player, location) - 2
      if (early) player.sendBlock(new Vec3(location.x, location.y, location.z), this.states.get(location.x, location.y, location.z))
      else this.dug(player, location)
    } else if (status === 1) player.digging = null
  }

  digTicks (player, { x, y, z }) {
    const state = this.states.get(x, y, z)
    if (state <= 0) return Infinity
    const item = this.registry.itemsByName[this.held(player)]
    const ms = this.Block.fromStateId(state, 0).digTime(item ? item.id : null, false, false, false)
    return Math.max(1, Math.ceil(ms / 50))
  }

  dug (player, { x, y, z }) {
    player.digging = null
    const block = this.registry.blocksByStateId[this.states.get(x, y, z)]
    if (!block || block.diggable === false || block.hardness === null || block.hardness < 0) return
    const held = this.registry.itemsByName[this.held(player)]
    this.clear(x, y, z)
    const above = this.registry.blocksByStateId[this.states.get(x, y + 1, z)]
    if (above && /^(grass|poppy|dandelion|dead_bush)$/.test(above.name)) this.clear(x, y + 1, z)
    if (block.harvestTools && !(held && block.harvestTools[held.id])) return // needs a tool to yield anything
    const loot = this.registry.blockLoot && this.registry.blockLoot[block.name]
    if (loot) this.loot(loot.drops, (name, count) => this.drop(name, x + 0.5, y + 0.5, z + 0.5, count))
  }

  clear (x, y, z) {
    const at = new Vec3(x, y, z)
    this.serv.players.forEach(player => player.sendBlock(at, 0))
    this.serv.overworld.sync.setBlockStateId(at, 0)
  }

  use (player) {
    if (this.held(player) !== 'bucket') return
    const { x, y, z } = player.position
    const [yaw, pitch] = [player.looks.yaw, player.looks.pitch].map(degrees => degrees * Math.PI / 180)
    const ray = { x: -Math.sin(yaw) * Math.cos(pitch), y: -Math.sin(pitch), z: Math.cos(yaw) * Math.cos(pitch) }
    const hit = march(this.states, { x, y: y + EYE, z }, ray, REACH)
    // A source among others fills up again at once, so the pond stays as it is.
    if (hit && hit.kind === WATER) this.put(player, 36 + player.heldItemSlot, 'water_bucket', 1)
  }

  // ---------------------------------------------------------------------------------------------------------- animals

  free (x, z) {
    const { size, trees } = this.plan
    if (x < 1 || z < 1 || x >= size - 1 || z >= size - 1 || this.plan.column(x, z).water !== null) return false
    return !trees.some(tree => tree.x === x && tree.z === z)
  }

  /** An animal at the free place nearest to (x, z); gone again after `stay` ticks, if given. */
  spawn (name, x, z, stay = Infinity) {
    const kind = this.registry.entitiesByName[name]
    if (!kind || !HEALTH[name]) throw Object.assign(new Error(`cannot spawn ${name}; known: ${Object.keys(HEALTH).join(', ')}`), { user: true })
    let best = null
    for (let i = -8; i <= 8; i++) {
      for (let j = -8; j <= 8; j++) {
        const cell = [Math.floor(x) + i, Math.floor(z) + j]
        const far = Math.hypot(i, j)
        if ((!best || far < best.far) && this.free(...cell)) best = { cell, far }
      }
    }
    if (!best) throw Object.assign(new Error(`there is no room for ${name} at ${x}, ${z}`), { user: true })
    const [cx, cz] = best.cell
    const at = new Vec3(cx + 0.5, this.plan.height(cx, cz) + 1, cz + 0.5)
    let entity
    this.serv.once('newEntity', made => { entity = made })
    this.serv.spawnMob(kind.id, this.serv.overworld, at, { yaw: 0 })
    still(entity)
    entity.health = HEALTH[name]
    this.animals.set(entity.id, { entity, name, rest: Math.floor(this.draw() * 100), walk: 0, heading: 0, flee: 0, until: this.ticks + stay })
  }

  scatter (name) {
    const { size } = this.plan
    for (;;) {
      const [x, z] = [Math.floor(this.draw() * size), Math.floor(this.draw() * size)]
      if (this.free(x, z)) return this.spawn(name, x + 0.5, z + 0.5)
    }
  }

  hit (player, target) {
    const animal = this.animals.get(target)
    if (!animal || animal.entity.position.distanceTo(player.position) > 5) return
    const share = Math.min(1, (this.ticks - (player.struck === undefined ? -99 : player.struck)) / SWORD_TICKS)
    player.struck = this.ticks
    animal.entity.health -= (DAMAGE[this.held(player)] || 1) * (0.2 + 0.8 * share * share)
    const away = animal.entity.position.minus(player.position)
    animal.heading = Math.atan2(away.z, away.x)
    animal.flee = FLEE_TICKS
    if (animal.entity.health > 0) {
      animal.entity._writeNearby('animation', { entityId: target, animation: 1 })
      return
    }
    const { x, y, z } = animal.entity.position
    this.animals.delete(target)
    this.serv.destroyEntity(animal.entity)
    const loot = this.registry.entityLoot && this.registry.entityLoot[animal.name]
    if (loot) this.loot(loot.drops, (name, count) => this.drop(name, x, y, z, count))
  }

  move (animal) {
    const { entity } = animal
    if (animal.flee > 0) animal.flee--
    else if (animal.rest > 0) {
      animal.rest--
      return
    } else if (animal.walk-- <= 0) {
      animal.rest = 40 + Math.floor(this.draw() * 160)
      animal.walk = 20 + Math.floor(this.draw() * 60)
      animal.heading = this.draw() * 2 * Math.PI
    }
    const pace = animal.flee > 0 ? FLEE : WALK
    const x = entity.position.x + pace * Math.cos(animal.heading)
    const z = entity.position.z + pace * Math.sin(animal.heading)
    const y = this.plan.height(Math.floor(x), Math.floor(z)) + 1
    if (!this.free(Math.floor(x), Math.floor(z)) || Math.abs(y - entity.position.y) > 1) {
      animal.heading += Math.PI * (0.5 + this.draw())
      return
    }
    entity.sendPosition(new Vec3(x, y, z), true)
  }

  // ------------------------------------------------------------------------------------------------------------- time

  /** One tick of everything but the players. */
  tick () {
    this.ticks++
    this.serv.tickCount = this.ticks
    for (const [id, animal] of this.animals) {
      if (this.ticks < animal.until) this.move(animal)
      else {
        this.animals.delete(id)
        this.serv.destroyEntity(animal.entity)
      }
    }
    for (const [id, item] of this.lying) {
      const age = this.ticks - item.since
      if (age < PICKUP_TICKS) continue
      const { position } = item.entity
      const near = this.serv.players.find(player => Math.hypot(player.position.x - position.x, player.position.z - position.z) < PICKUP_BLOCKS &&
        position.y - player.position.y > -1.5 && position.y - player.position.y < 2.3)
      if (age > ITEM_TICKS || (near && this.give(near, item.name, item.count))) {
        this.lying.delete(id)
        this.serv.destroyEntity(item.entity)
      }
    }
  }

  /** What there is: animals, items, trees that still have a log, ponds. */
  things () {
    const at = ({ x, y, z }) => ({ x, y, z })
    const logs = this.plan.trees.filter(tree => [...Array(tree.tall).keys()].some(i => this.kind(tree.x, tree.y + i, tree.z) === THING))
    return [
      ...[...this.animals.values()].map(animal => ({ name: animal.name, ...at(animal.entity.position) })),
      ...[...this.lying.values()].map(item => ({ name: `item:${item.name}`, ...at(item.entity.position) })),
      ...logs.map(tree => ({ name: 'oak_log', x: tree.x + 0.5, y: tree.y, z: tree.z + 0.5 })),
      ...this.plan.ponds.map(pond => ({ name: 'water', x: pond.x, y: pond.level, z: pond.z, radius: pond.radius }))
    ]
  }
}

/** Keep the server's own physics off: it runs on the clock and asks for blocks one by one. */
function still (entity) {
  entity.size = undefined
  entity.deathTime = undefined
  entity.pickupTime = undefined
}

module.exports = { Rules, SYNC }
