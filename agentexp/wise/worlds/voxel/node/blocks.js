'use strict'
// What a block is to a body that walks and looks: one class per block state, and quick access to the states of a client's world.

const AIR = 0
const PLANT = 1 // can be walked and looked through
const LEAVES = 2
const WATER = 3
const LAVA = 4
const GROUND = 5 // can be stood on
const THING = 6 // stands on the ground and is in the way: trunks, fences, cactus
const BARRIER = 7 // as THING, but invisible

const THINGS = /(_log|_wood|_stem|_hyphae|fence|fence_gate|_wall|cactus|pane|_bars|bamboo|pumpkin|melon)$/

/** Class by state id, for one version of the game. */
function classes (registry) {
  const table = new Uint8Array(1 + Math.max(...registry.blocksArray.map(block => block.maxStateId)))
  for (const block of registry.blocksArray) table.fill(classOf(block), block.minStateId, block.maxStateId + 1)
  return table
}

function classOf ({ name, boundingBox }) {
  if (/(^|_)air$/.test(name)) return AIR
  if (name === 'water' || name === 'bubble_column' || /kelp|seagrass/.test(name)) return WATER
  if (name === 'lava') return LAVA
  if (name === 'barrier') return BARRIER
  if (name.endsWith('_leaves')) return LEAVES
  if (THINGS.test(name)) return THING
  return boundingBox === 'empty' ? PLANT : GROUND
}

/** Reads states of a prismarine-world without making a Block each time. */
class States {
  constructor (world, registry) {
    this.world = world
    this.registry = registry
    this.classes = classes(registry)
    this.at = { x: 0, y: 0, z: 0 }
    this.key = NaN
    this.column = null
    const { min_y: minY = 0, height = 256 } = {}
    this.minY = minY
    this.maxY = minY + height
  }

  /** Forget which column was read last: it may have been replaced. */
  fresh () {
    this.key = NaN
  }

  /** State id at integer coordinates; -1 where the column is not loaded, 0 above and below the world. */
  get (x, y, z) {
    const key = (x >> 4) * 0x200000 + (z >> 4)
    if (key !== this.key) {
      this.key = key
      this.column = this.world.getColumn(x >> 4, z >> 4)
      if (this.column && this.column.minY !== undefined) {
        this.minY = this.column.minY
        this.maxY = this.minY + this.column.worldHeight
      }
    }
    if (!this.column) return -1
    if (y < this.minY || y >= this.maxY) return 0
    this.at.x = x & 15
    this.at.y = y
    this.at.z = z & 15
    return this.column.getBlockStateId(this.at)
  }

  /** Name of the block of a state. */
  name (state) {
    return this.registry.blocksByStateId[state].name
  }
}

module.exports = { States, AIR, PLANT, LEAVES, WATER, LAVA, GROUND, THING, BARRIER }
