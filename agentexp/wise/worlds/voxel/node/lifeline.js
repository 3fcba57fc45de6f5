'use strict'
// Ends this process and all that it started when the process that started it ends, however that happens: it holds the only
// write end of a pipe. The reader is a thread of its own, so that a busy or hanging main thread changes nothing.

const net = require('net')
const { Worker, isMainThread, workerData } = require('worker_threads')

/** Begin to watch the pipe named by AGENTEXP_LIFELINE; without that variable (started by hand) nothing is watched. */
function watch () {
  const fd = Number(process.env.AGENTEXP_LIFELINE)
  if (fd > 0) new Worker(__filename, { workerData: { fd } }).unref()
}

if (isMainThread) {
  module.exports = { watch }
} else {
  const pipe = new net.Socket({ fd: workerData.fd, readable: true, writable: false })
  const end = () => process.kill(-process.pid, 'SIGKILL') // the parent made us the leader of our group
  pipe.on('end', end).on('error', end).resume()
}
