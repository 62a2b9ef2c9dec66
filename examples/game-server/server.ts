/** A game in which each move is told to all players. */
const players = new Map<string, { readonly port: number; readonly address: string }>()

const socket = await Bun.udpSocket({
  hostname: '127.0.0.1',
  port: Number(process.env.PORT ?? 27_015),
  socket: {
    data(own, move, port, address) {
      players.set(`${address} ${port}`, { port, address })
      for (const player of players.values())
        own.send(`${players.size} playing: ${move}`, player.port, player.address)
    },
  },
})
console.log(`the game is on port ${socket.port}`)
