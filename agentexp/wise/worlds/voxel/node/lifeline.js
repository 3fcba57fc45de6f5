'use strict'
// Ends this process and all that it started when the process that started it ends, however that happens: it holds the only
// write end of a pipe. The reader is a thread of its own, so that a busy or hanging main thread changes nothing.

const fs = require('fs')
const net = require('net')
const os = require('os')
const path = require('path')
const { Worker, isMainThread, workerData } = require('worker_threads')

/** Begin to watch the pipe named by AGENTEXP_LIFELINE; without that variable (started by hand) nothing is watched. */
function watch () {
  const fd = Number(process.env.AGENTEXP_LIFELINE)
  if (fd > 0) new Worker(__filename, { workerData: { fd } }).unref()
}

/** Remove the folder for temporary files that the parent made for us, and end our group, which it made us the leader of. */
function leave () {
  if (!process.env.AGENTEXP_LIFELINE) process.exit(0)
  try {
    if (path.basename(os.tmpdir()).startsWith('agentexp-voxel-')) fs.rmSync(os.tmpdir(), { recursive: true, force: true, maxRetries: 3 })
  } finally { // Chromium may still be writing there
    process.kill(-process.pid, 'SIGKILL')
  }
}

if (isMainThread) {
  module.exports = { watch, leave }
} else {
  const pipe = new net.Socket({ fd: workerData.fd, readable: true, writable: false })
  pipe.on('end', leave).on('error', leave).resume()
}
