// An app as `localtunnels run` starts it: says what it was told, listens, moves when it is asked to, ends as its signal says.

const said = {
  url: process.env.PUBLIC_URL,
  hosts: process.env.__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS,
  words: process.argv.slice(2),
}
console.log(`told ${JSON.stringify(said)}`)
// First: who sees that it listens may signal it.
process.on('SIGTERM', () => {
  console.log('told to end')
  process.exit(7)
})
let app = listen()

function listen(): Bun.Server<undefined> {
  const wished = Number(process.env.PORT ?? 0)
  return Bun.serve({
    port: wished,
    fetch: ({ url }) => {
      const { pathname } = new URL(url)
      if (pathname === '/move') setTimeout(move)
      if (pathname === '/exit') setTimeout(() => process.exit(3))
      return new Response(`port ${app.port}`, { headers: { connection: 'close' } })
    },
  })
}

function move(): void {
  const old = app
  app = listen()
  void old.stop(true)
}
