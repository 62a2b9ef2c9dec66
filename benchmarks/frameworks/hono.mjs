// The sample app on Hono, on Bun.serve.

import { Hono } from 'hono'

const app = new Hono()
app.use(async (context, next) => {
  context.set('one', true)
  await next()
})
app.use(async (context, next) => {
  context.set('two', true)
  await next()
})
app.get('/favicon.ico', context => context.body(''))
app.get('/users/:id', context => context.text(`User: ${context.req.param('id')}`))
const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: app.fetch })
console.log(`listening ${server.port}`)
