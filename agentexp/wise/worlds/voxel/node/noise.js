'use strict'
// Random numbers and smooth noise that depend on the seed only.

/** Generator of numbers in [0, 1) from an integer seed (mulberry32). */
function random (seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6D2B79F5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** A number in [0, 1) for a lattice point. */
function hash (x, z, seed) {
  let h = Math.imul(x, 374761393) ^ Math.imul(z, 668265263) ^ Math.imul(seed, 2246822519)
  h = Math.imul(h ^ (h >>> 13), 1274126177)
  return ((h ^ (h >>> 16)) >>> 0) / 4294967296
}

/** Value noise in [-1, 1] with lattice spacing `scale` blocks. */
function noise (x, z, scale, seed) {
  const u = x / scale
  const v = z / scale
  const i = Math.floor(u)
  const j = Math.floor(v)
  const a = smooth(u - i)
  const b = smooth(v - j)
  const low = hash(i, j, seed) * (1 - a) + hash(i + 1, j, seed) * a
  const high = hash(i, j + 1, seed) * (1 - a) + hash(i + 1, j + 1, seed) * a
  return (low * (1 - b) + high * b) * 2 - 1
}

/** 0 at 0, 1 at 1, level at both; `t` outside is cut. */
function smooth (t) {
  const s = Math.min(1, Math.max(0, t))
  return s * s * (3 - 2 * s)
}

module.exports = { random, hash, noise, smooth }
