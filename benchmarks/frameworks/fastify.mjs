// The sample app on fastify; its hooks are what others call middleware.

import fastify from 'fastify'

const app = fastify()
app.addHook('onRequest', (request, _reply, done) => {
  request.raw.one = true
  done()
})
app.addHook('onRequest', (request, _reply, done) => {
  request.raw.two = true
  done()
})
app.get('/favicon.ico', (_request, reply) => reply.send(''))
app.get('/users/:id', (request, reply) => reply.send(`User: ${request.params.id}`))
await app.listen({ port: 0, host: '127.0.0.1' })
console.log(`listening ${app.server.address().port}`)
