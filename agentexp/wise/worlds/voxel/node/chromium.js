'use strict'
// A headless Chromium with one page, driven over the DevTools protocol through two pipes: no port, no further package, and the
// browser ends when the pipes close.

const fs = require('fs')
const os = require('os')
const path = require('path')
const { spawn } = require('child_process')

const FLAGS = [
  '--headless=new', '--remote-debugging-pipe', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader',
  '--no-first-run', '--no-default-browser-check', '--disable-extensions', '--disable-background-networking', '--disable-sync',
  '--disable-component-update', '--disable-dev-shm-usage', '--mute-audio', '--hide-scrollbars', '--password-store=basic'
]

class Chromium {
  /**
   * @param {string} program
   * @param {[number, number]} size of the page
   */
  constructor (program, [width, height]) {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'agentexp-chromium-'))
    const flags = [...FLAGS, `--user-data-dir=${this.folder}`, `--window-size=${width},${height}`]
    if (process.getuid && process.getuid() === 0) flags.push('--no-sandbox') // Chromium refuses its sandbox to root
    this.child = spawn(program, [...flags, 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
    this.waiting = new Map()
    this.number = 0
    this.gone = null
    let rest = ''
    this.child.stdio[4].setEncoding('utf8').on('data', text => {
      const parts = (rest + text).split('\0')
      rest = parts.pop()
      for (const part of parts) this.receive(JSON.parse(part))
    })
    const lost = reason => {
      this.gone = reason
      for (const { reject } of this.waiting.values()) reject(new Error(reason))
      this.waiting.clear()
    }
    this.child.on('error', error => lost(`Chromium could not start: ${error.message}`))
    this.child.on('exit', code => lost(`Chromium ended (exit status ${code})`))
    for (const pipe of this.child.stdio.slice(3)) pipe.on('error', error => lost(`Chromium is gone: ${error.message}`))
  }

  receive (message) {
    const waiting = this.waiting.get(message.id)
    if (!waiting) return
    this.waiting.delete(message.id)
    if (message.error) waiting.reject(new Error(`Chromium: ${message.error.message}`))
    else waiting.resolve(message.result)
  }

  send (method, params = {}) {
    if (this.gone) return Promise.reject(new Error(this.gone))
    const id = ++this.number
    const sessionId = method.startsWith('Target.') ? undefined : this.session
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject })
      this.child.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0')
    })
  }

  /** Open a page; `script` runs in it before its own scripts. */
  async open (url, script, [width, height]) {
    const { targetInfos } = await this.send('Target.getTargets')
    const { targetId } = targetInfos.find(info => info.type === 'page')
    this.session = (await this.send('Target.attachToTarget', { targetId, flatten: true })).sessionId
    await this.send('Page.enable')
    await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false })
    await this.send('Page.addScriptToEvaluateOnNewDocument', { source: script })
    await this.send('Page.navigate', { url })
  }

  /** Value of an expression in the page; promises are waited for. */
  async evaluate (expression) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    if (exceptionDetails) {
      throw new Error(`the viewer page failed: ${(exceptionDetails.exception || {}).description || exceptionDetails.text}`)
    }
    return result.value
  }

  /** The folder is within the one that bridge.py made, and goes with that. */
  close () {
    this.child.kill('SIGKILL')
  }
}

module.exports = { Chromium }
