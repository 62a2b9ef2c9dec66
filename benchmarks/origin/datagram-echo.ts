// An origin that gives back every datagram that it gets, for round trips by UDP. Its TCP port takes connections, and no more.

const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {}, error() {} } })
await Bun.udpSocket({
  hostname: '127.0.0.1',
  port: listener.port,
  socket: {
    data(socket, datagram, port, address) {
      socket.send(datagram, port, address)
    },
  },
})
console.log(`listening ${listener.port}`)
