'use strict'
// What is in view, by rays through a grid of pixels: names with pixel counts and nearest points, and a picture in flat colours.

const { PLANT, BARRIER } = require('./blocks')

const EYE = 1.62
const SKY = [128, 168, 255]
const COLOURS = [ // by the first pattern that the name matches; colours of ours
  [/grass_block|^grass$|fern/, [104, 152, 68]], [/leaves/, [48, 104, 32]], [/water/, [48, 84, 196]], [/lava/, [216, 96, 24]],
  [/log|wood/, [96, 76, 48]], [/sandstone|sand/, [218, 208, 160]], [/dirt/, [134, 96, 66]], [/gravel/, [132, 126, 124]],
  [/snow|ice/, [236, 244, 248]], [/stone|ore|bedrock|andesite|granite|diorite/, [124, 124, 124]], [/poppy|tulip/, [196, 44, 36]],
  [/dandelion/, [240, 220, 60]], [/bush/, [146, 100, 40]], [/planks/, [160, 130, 78]]
]
const MOBS = { cow: [70, 52, 40], sheep: [232, 232, 232], pig: [240, 164, 164], chicken: [248, 240, 220], item: [220, 180, 90] }
const SHADE = { x: 0.82, y: 1, z: 0.68 }

/**
 * @param states a `States`
 * @param eye {x, y, z}
 * @param yaw, pitch mineflayer's, radians
 * @param things [{id, name, x, y, z, width, height}] with the feet's middle
 * @param {{width, height, angle, range}} view pixels, opening from left to right in degrees, blocks
 * @returns {{width, height, hits: Array, full: Map}} hits row by row from the upper left, null for sky; rays by thing, hidden or not
 */
function cast (states, eye, yaw, pitch, things, { width, height, angle, range }) {
  const wide = Math.tan(angle * Math.PI / 360)
  const tall = wide * height / width
  const [sy, cy, sp, cp] = [Math.sin(yaw), Math.cos(yaw), Math.sin(pitch), Math.cos(pitch)]
  const near = things.filter(thing => Math.hypot(thing.x - eye.x, thing.z - eye.z) < range)
  const hits = new Array(width * height)
  const full = new Map(near.map(thing => [thing.id, 0]))
  for (let row = 0; row < height; row++) {
    const up = tall * (1 - 2 * (row + 0.5) / height)
    for (let col = 0; col < width; col++) {
      const right = wide * (2 * (col + 0.5) / width - 1)
      // forward (0, 0, -1) and right (1, 0, 0), tilted by pitch, then turned by yaw about y
      const fy = sp + up * cp
      const fz = -(cp - up * sp)
      const dx = right * cy + fz * sy
      const dz = -right * sy + fz * cy
      const length = Math.hypot(dx, fy, dz)
      const ray = { x: dx / length, y: fy / length, z: dz / length }
      let hit = march(states, eye, ray, range)
      for (const thing of near) {
        const far = meets(thing, eye, ray)
        if (far >= range) continue
        full.set(thing.id, full.get(thing.id) + 1)
        if (!hit || far < hit.far) hit = { far, thing, axis: 'z' }
      }
      if (hit) hit.ray = ray
      hits[row * width + col] = hit
    }
  }
  return { width, height, hits, full }
}

/** First block on a ray that is neither air nor a plant nor a barrier; null for none within the range. */
function march (states, eye, ray, range, through = PLANT) {
  let x = Math.floor(eye.x)
  let y = Math.floor(eye.y)
  let z = Math.floor(eye.z)
  const [sx, sy, sz] = [Math.sign(ray.x), Math.sign(ray.y), Math.sign(ray.z)]
  const step = d => d === 0 ? Infinity : Math.abs(1 / d)
  const [ex, ey, ez] = [step(ray.x), step(ray.y), step(ray.z)]
  const first = (p, cell, d, e) => d > 0 ? (cell + 1 - p) * e : d < 0 ? (p - cell) * e : Infinity
  let tx = first(eye.x, x, ray.x, ex)
  let ty = first(eye.y, y, ray.y, ey)
  let tz = first(eye.z, z, ray.z, ez)
  let far = 0
  let axis = 'y'
  while (far < range) {
    const state = states.get(x, y, z)
    if (state < 0) return null
    const kind = states.classes[state]
    if (kind > through && kind !== BARRIER) return { far, state, kind, axis, x, y, z }
    if (tx < ty && tx < tz) {
      far = tx; tx += ex; x += sx; axis = 'x'
    } else if (ty < tz) {
      far = ty; ty += ey; y += sy; axis = 'y'
    } else {
      far = tz; tz += ez; z += sz; axis = 'z'
    }
  }
  return null
}

/** Distance along a ray to a thing's box; Infinity where it misses. */
function meets (thing, eye, ray) {
  const half = thing.width / 2
  let enter = 0
  let leave = Infinity
  for (const [axis, low, high] of [['x', thing.x - half, thing.x + half], ['y', thing.y, thing.y + thing.height], ['z', thing.z - half, thing.z + half]]) {
    const d = ray[axis]
    if (Math.abs(d) < 1e-9) {
      if (eye[axis] < low || eye[axis] > high) return Infinity
      continue
    }
    const a = (low - eye[axis]) / d
    const b = (high - eye[axis]) / d
    enter = Math.max(enter, Math.min(a, b))
    leave = Math.min(leave, Math.max(a, b))
  }
  return enter <= leave ? enter : Infinity
}

/** [{name, mob, pixels, visible, x, y, z, distance}] by name for blocks, one by one for mobs and items; the nearest point of each. */
function summary (states, view, eye) {
  const found = new Map()
  for (const hit of view.hits) {
    if (!hit) continue
    const key = hit.thing ? hit.thing.id : states.name(hit.state)
    let entry = found.get(key)
    if (!entry) {
      entry = { name: hit.thing ? hit.thing.name : key, mob: Boolean(hit.thing), pixels: 0, visible: 1, distance: Infinity }
      found.set(key, entry)
    }
    entry.pixels++
    if (hit.far < entry.distance) {
      entry.distance = hit.far
      const at = hit.thing ? { x: hit.thing.x, y: hit.thing.y + hit.thing.height / 2, z: hit.thing.z } : { x: hit.x + 0.5, y: hit.y + 0.5, z: hit.z + 0.5 }
      Object.assign(entry, at)
    }
    if (hit.thing) entry.id = hit.thing.id
  }
  for (const entry of found.values()) if (entry.mob) entry.visible = entry.pixels / view.full.get(entry.id)
  return [...found.values()].sort((a, b) => a.distance - b.distance)
}

/** The rays as a picture: rgb bytes, base64. */
function paint (states, view, range) {
  const rgb = Buffer.alloc(view.width * view.height * 3)
  const known = new Map()
  view.hits.forEach((hit, at) => {
    let colour = SKY
    if (hit) {
      const name = hit.thing ? hit.thing.name : states.name(hit.state)
      if (!known.has(name)) known.set(name, hit.thing ? MOBS[name] || [150, 80, 150] : (COLOURS.find(([pattern]) => pattern.test(name)) || [0, [150, 150, 150]])[1])
      const light = SHADE[hit.axis]
      const fog = Math.min(1, hit.far / range) ** 3
      colour = known.get(name).map((value, i) => value * light * (1 - fog) + SKY[i] * fog)
    }
    for (let i = 0; i < 3; i++) rgb[at * 3 + i] = colour[i]
  })
  return rgb.toString('base64')
}

module.exports = { EYE, cast, march, meets, summary, paint }
