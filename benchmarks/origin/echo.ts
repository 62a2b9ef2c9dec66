// An origin that gives back what it gets, for round trips.

const listener = Bun.listen({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open: socket => void socket.setNoDelay(true),
    data: (socket, chunk) => void socket.write(chunk),
    error() {},
  },
})
console.log(`listening ${listener.port}`)
