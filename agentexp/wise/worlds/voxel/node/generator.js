'use strict'
// The world of an episode, a function of its seed: hills, a stone mountain, a desert, a forest of oaks, two ponds, and a wall of
// barriers about the square region [0, size) x [0, size). Beyond the wall the land goes on, so that it cannot be told by eye.

const { random, hash, noise, smooth } = require('./noise')

const LEVEL = 66
const DEPTH = 8 // blocks of ground below the surface; deeper there is nothing, which nobody can see
const WALL = 6
const OAKS = 25 // on 128 x 128
const SPREAD = 0.3 // least distance between the places, as a share of the side

/**
 * @param {{seed: number, size: number}} options
 * @returns plan with `height(x, z)` (y of the top block), `column(x, z)`, `trees`, `ponds`, `places`
 */
function plan ({ seed, size }) {
  const draw = random(seed)
  const spots = places(draw, size, 5)
  const [mountain, desert, forest, ...waters] = spots
  const wide = { mountain: size * 0.17, desert: size * 0.2, forest: size * 0.13 }

  const hills = (x, z) => LEVEL + 3.5 * noise(x, z, 26, seed) + 1.2 * noise(x, z, 11, seed + 1) +
    (size / 8) * Math.max(0, smooth(1.15 - distance(mountain, x, z) / wide.mountain) - 0.05)
  const ponds = waters.map(({ x, z }) => ({ x, z, radius: 5 + 2 * draw(), level: Math.floor(hills(x, z)) - 1 }))

  function shore (x, z) { // the pond that a place belongs to, and how far beyond its bank it is (negative: in the water)
    for (const pond of ponds) {
      const wobble = 1.2 * noise(x, z, 5, seed + 2)
      const beyond = distance(pond, x, z) - pond.radius + wobble
      if (beyond < 7) return { pond, beyond }
    }
    return null
  }

  function height (x, z) {
    const land = hills(x, z)
    const near = shore(x, z)
    if (!near) return Math.floor(land)
    if (near.beyond < 0) return near.pond.level - (near.beyond < -2 ? 3 : 2)
    const share = smooth(near.beyond / 7)
    return Math.floor(near.pond.level * (1 - share) + land * share)
  }

  function biome (x, z) {
    const ragged = 4 * noise(x, z, 9, seed + 3)
    if (distance(desert, x, z) + ragged < wide.desert) return 'desert'
    if (distance(mountain, x, z) + ragged < wide.mountain * 0.9) return 'mountains'
    if (distance(forest, x, z) + ragged < wide.forest) return 'forest'
    return 'plains'
  }

  function column (x, z) {
    const top = height(x, z)
    const near = shore(x, z)
    if (near && near.beyond < 0) return { top, surface: 'sand', below: 'sand', water: near.pond.level, biome: 'plains', plant: null }
    const land = biome(x, z)
    const surface = near && near.beyond < 1.5 ? 'sand' : { desert: 'sand', mountains: 'stone' }[land] || 'grass_block'
    const below = { sand: 'sand', stone: 'stone' }[surface] || 'dirt'
    let plant = null
    const luck = hash(x, z, seed + 4)
    if (surface === 'grass_block') plant = luck < 0.03 ? 'grass' : luck < 0.034 ? 'poppy' : luck < 0.04 ? 'dandelion' : null
    if (land === 'desert' && luck < 0.01) plant = 'dead_bush'
    return { top, surface, below, water: null, biome: land, plant }
  }

  const trees = []
  const wanted = Math.round(OAKS * (size / 128) ** 2)
  for (let tries = 0; trees.length < wanted && tries < wanted * 60; tries++) {
    const angle = 2 * Math.PI * draw()
    const far = wide.forest * Math.sqrt(draw())
    const tree = { x: Math.floor(forest.x + far * Math.cos(angle)), z: Math.floor(forest.z + far * Math.sin(angle)), tall: 4 + Math.floor(3 * draw()) }
    const inside = Math.min(tree.x, tree.z) > 3 && Math.max(tree.x, tree.z) < size - 4
    if (!inside || shore(tree.x, tree.z) || trees.some(other => distance(other, tree.x, tree.z) < 4)) continue
    trees.push({ ...tree, y: height(tree.x, tree.z) + 1 })
  }
  return { seed, size, height, column, trees, ponds, places: { mountain, desert, forest, ponds: waters } }
}

/** `count` places inside the region, far from each other; nearer where the draws do not allow it. */
function places (draw, size, count) {
  const edge = size * 0.14
  const found = []
  for (let tries = 0; found.length < count; tries++) {
    const spot = { x: edge + (size - 2 * edge) * draw(), z: edge + (size - 2 * edge) * draw() }
    const least = size * SPREAD * Math.max(0, 1 - tries / 400)
    if (found.every(other => distance(other, spot.x, spot.z) >= least)) found.push(spot)
  }
  return found
}

function distance (place, x, z) {
  return Math.hypot(place.x - x, place.z - z)
}

/** Where the body starts: feet on dry, open ground; "centre", "near_centre" (within an eighth of the side) or "random". */
function spawn (world, how) {
  const draw = random(world.seed + 77)
  const half = world.size / 2
  const reach = { centre: 0, near_centre: world.size / 8, random: half - 4 }[how]
  for (let tries = 0; tries < 10000; tries++) {
    const wide = Math.min(half - 4, reach + tries / 50) // the centre itself may be under water
    const x = Math.floor(half + wide * (2 * draw() - 1))
    const z = Math.floor(half + wide * (2 * draw() - 1))
    const column = world.column(x, z)
    if (column.water === null && !world.trees.some(tree => Math.hypot(tree.x - x, tree.z - z) < 3)) {
      return { x: x + 0.5, y: column.top + 1, z: z + 0.5, yaw: 2 * Math.PI * draw() }
    }
  }
  throw new Error('the region has no dry ground')
}

/**
 * Makes chunks of a plan.
 * @param world a plan
 * @param registry prismarine-registry of the version
 * @param Chunk prismarine-chunk of the version
 * @returns {(chunkX: number, chunkZ: number) => Chunk}
 */
function chunks (world, registry, Chunk) {
  const { Vec3 } = require('vec3')
  const state = name => registry.blocksByName[name].defaultState
  const biomes = Object.fromEntries(['plains', 'desert', 'mountains', 'forest'].map(name => [name, registry.biomesByName[name].id]))
  const wall = (x, z) => (x === -1 || x === world.size || z === -1 || z === world.size) &&
    x >= -1 && x <= world.size && z >= -1 && z <= world.size

  return (chunkX, chunkZ) => {
    const chunk = new Chunk({ minY: 0, worldHeight: 256 })
    const at = new Vec3(0, 0, 0)
    const put = (x, y, z, name) => chunk.setBlockStateId(at.set(x, y, z), state(name))
    for (let x = 0; x < 16; x++) {
      for (let z = 0; z < 16; z++) {
        const wx = chunkX * 16 + x
        const wz = chunkZ * 16 + z
        const column = world.column(wx, wz)
        const bottom = column.top - DEPTH
        put(x, bottom, z, 'bedrock')
        for (let y = bottom + 1; y < column.top; y++) put(x, y, z, y > column.top - 4 ? column.below : 'stone')
        put(x, column.top, z, column.surface)
        if (column.water !== null) for (let y = column.top + 1; y <= column.water; y++) put(x, y, z, 'water')
        if (column.plant) put(x, column.top + 1, z, column.plant)
        if (wall(wx, wz)) for (let y = column.top + 1; y <= column.top + WALL; y++) put(x, y, z, 'barrier')
        for (let y = 0; y < 256; y += 64) chunk.setBiome(at.set(x, y, z), biomes[column.biome])
      }
    }
    for (const tree of world.trees) grow(tree, chunkX * 16, chunkZ * 16, put)
    return chunk
  }
}

/** The part of a tree that lies in the chunk with this corner. */
function grow (tree, cornerX, cornerZ, put) {
  const set = (x, y, z, name) => {
    if (x >= cornerX && x < cornerX + 16 && z >= cornerZ && z < cornerZ + 16) put(x - cornerX, y, z - cornerZ, name)
  }
  const crown = tree.y + tree.tall
  for (let y = crown - 2; y <= crown + 1; y++) {
    const wide = y < crown ? 2 : 1
    for (let dx = -wide; dx <= wide; dx++) {
      for (let dz = -wide; dz <= wide; dz++) {
        const corner = Math.abs(dx) === wide && Math.abs(dz) === wide
        if (!corner || (y < crown && hash(tree.x + dx, tree.z + dz, y) < 0.5)) set(tree.x + dx, y, tree.z + dz, 'oak_leaves')
      }
    }
  }
  for (let y = tree.y; y < crown; y++) set(tree.x, y, tree.z, 'oak_log')
}

module.exports = { plan, spawn, chunks }
