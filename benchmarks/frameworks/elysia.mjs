// The sample app on Elysia, on Bun.serve.

import { Elysia } from 'elysia'

const app = new Elysia()
  .derive(() => ({ one: true }))
  .derive(() => ({ two: true }))
  .get('/favicon.ico', () => '')
  .get('/users/:id', ({ params }) => `User: ${params.id}`)
  .listen({ hostname: '127.0.0.1', port: 0 })
console.log(`listening ${app.server.port}`)
