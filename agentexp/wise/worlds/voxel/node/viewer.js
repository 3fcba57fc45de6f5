'use strict'
// First-person pictures: prismarine-viewer's page in a headless Chromium. The page draws only when it is asked to, so it costs
// nothing between two pictures.

const http = require('http')
const path = require('path')
const { Chromium } = require('./chromium')

const HOST = '127.0.0.1'
const CHUNKS = 4
const SETTLE_MS = 120000

// Runs in the page before its own scripts: gives the camera our opening, holds back drawing, notes the sections that the mesh
// worker still owes, and lets one worker do the work of the page's four, whose script takes seconds of processor time each.
const HOOK = `(fov => {
  let three
  Object.defineProperty(window, 'THREE', {
    get: () => three,
    set (library) {
      three = library
      const camera = library.PerspectiveCamera.prototype
      const plain = camera.updateProjectionMatrix
      camera.updateProjectionMatrix = function () { this.fov = fov; plain.call(this) }
    }
  })
  let pending = null
  window.requestAnimationFrame = callback => { pending = callback; return 1 }
  const owed = new Set()
  window.agentexp = { owed }
  const Plain = window.Worker
  const key = ({ x, y, z }) => [x, y, z].map(value => Math.floor(value / 16) * 16).join()
  let real = null
  window.Worker = function (...args) {
    const first = real === null
    if (first) {
      real = new Plain(...args)
      real.plain = real.postMessage.bind(real)
      real.addEventListener('message', ({ data }) => { if (data && data.type === 'sectionFinished') owed.delete(data.key) })
    }
    const post = (message, ...rest) => {
      if (message.type === 'dirty') owed.add(key(message))
      if (first || message.type === 'dirty') real.plain(message, ...rest)
    }
    if (!first) return { postMessage: post }
    real.postMessage = post
    return real
  }
  window.agentexp.draw = () => { const callback = pending; pending = null; if (callback) callback(performance.now()) }
})`

class Viewer {
  constructor (bot, program, { picture, angle }) {
    this.bot = bot
    this.size = picture
    this.program = program
    const [width, height] = picture
    this.fov = 360 / Math.PI * Math.atan(Math.tan(angle * Math.PI / 360) * height / width) // from bottom to top
    this.ready = null
  }

  /** Serve the page and open it. */
  async start () {
    const express = require('express')
    const { WorldView } = require('prismarine-viewer/viewer/lib/worldView') // its index wants a canvas package too
    const root = path.dirname(require.resolve('prismarine-viewer/package.json'))
    const app = express()
    app.use('/', express.static(path.join(root, 'public')))
    this.server = http.createServer(app)
    this.io = require('socket.io')(this.server, { maxHttpBufferSize: 1e9, pingTimeout: 600000, pingInterval: 600000 })
    const connected = new Promise(resolve => this.io.once('connection', socket => {
      this.socket = socket
      socket.emit('version', this.bot.version)
      this.view = new WorldView(this.bot.world, CHUNKS, this.bot.entity.position, socket)
      this.view.listenToBot(this.bot)
      resolve(this.view.init(this.bot.entity.position))
    }))
    await new Promise((resolve, reject) => this.server.once('error', reject).listen(0, HOST, resolve))
    this.chromium = new Chromium(this.program, this.size)
    await this.chromium.open(`http://${HOST}:${this.server.address().port}/`, `${HOOK}(${this.fov})`, this.size)
    await connected
  }

  /** PNG of what the body sees now, base64. */
  async picture () {
    if (!this.ready) this.ready = this.start()
    await this.ready
    const { position, yaw, pitch } = this.bot.entity
    await this.view.updatePosition(position)
    this.socket.emit('position', { pos: position, yaw, pitch, addMesh: false })
    await this.settle()
    return this.chromium.evaluate(`(async () => {
      agentexp.draw() // starts the camera's way
      await new Promise(resolve => setTimeout(resolve, 80))
      agentexp.draw()
      return document.querySelector('canvas').toDataURL('image/png').split(',')[1]
    })()`)
  }

  /** Wait until the page has everything that was sent, and all of it as meshes. */
  async settle () {
    const end = Date.now() + SETTLE_MS
    let calm = 0
    while (calm < 2) {
      const owed = await this.chromium.evaluate('(agentexp.draw(), agentexp.owed.size)')
      if (Date.now() > end) throw new Error(`the viewer page still owes ${owed} sections`)
      calm = owed > 0 ? 0 : calm + 1
      await new Promise(resolve => setTimeout(resolve, owed > 0 ? 50 : 20))
    }
  }

  close () {
    if (this.chromium) this.chromium.close()
    if (this.io) this.io.close()
  }
}

module.exports = { Viewer }
