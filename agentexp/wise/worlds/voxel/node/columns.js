'use strict'
// The ground of a chunk as the Python side wants it: see surface.py.

const { LEAVES, WATER, LAVA, GROUND, THING, BARRIER } = require('./blocks')

const OPEN = 0
const WET = 1
const HOT = 2
const SOLID = 3
const UNKNOWN = -(1 << 14)
const BODY = 2 // blocks above the ground that a body fills

/**
 * @param states a `States`
 * @param chunkX, chunkZ the chunk
 * @param {number} high y above which nothing is looked for
 * @returns {{x, z, ground, top, kind}} corner in blocks; base64 of int16, int16 and uint8, indexed [x][z]
 */
function ground (states, chunkX, chunkZ, high) {
  const floor = new Int16Array(256)
  const top = new Int16Array(256)
  const kind = new Uint8Array(256)
  for (let x = 0; x < 16; x++) {
    for (let z = 0; z < 16; z++) {
      const at = x * 16 + z
      const column = scan(states, chunkX * 16 + x, chunkZ * 16 + z, high)
      floor[at] = column.floor
      top[at] = column.top
      kind[at] = column.kind
    }
  }
  const text = array => Buffer.from(array.buffer).toString('base64')
  return { x: chunkX * 16, z: chunkZ * 16, ground: text(floor), top: text(top), kind: text(kind) }
}

function scan (states, x, z, high) {
  let thing = UNKNOWN // lowest part of what stands here
  let opaque = UNKNOWN
  for (let y = high; y >= states.minY; y--) {
    const state = states.get(x, y, z)
    if (state < 0) break
    const kind = states.classes[state]
    if (kind <= LEAVES) continue
    if (kind === WATER || kind === LAVA) return { floor: y + 1, top: Math.max(y + 1, opaque), kind: kind === WATER ? WET : HOT }
    if (kind === GROUND) {
      const stands = thing !== UNKNOWN && thing < y + 1 + BODY
      return { floor: y + 1, top: stands ? Math.max(y + 1, opaque) : y + 1, kind: stands ? SOLID : OPEN }
    }
    thing = y
    if (kind === THING && opaque === UNKNOWN) opaque = y + 1
    if (kind !== THING && kind !== BARRIER) throw new Error(`unknown class ${kind}`)
  }
  return { floor: UNKNOWN, top: UNKNOWN, kind: OPEN }
}

/** Highest y of a chunk that can hold a block. */
function highest (column) {
  if (!column.sections) return 255
  const lowest = column.minY || 0
  for (let i = column.sections.length - 1; i >= 0; i--) if (column.sections[i]) return lowest + i * 16 + 15
  return lowest
}

module.exports = { ground, highest }
