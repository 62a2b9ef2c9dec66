// The sample app on koa with @koa/router.

import Router from '@koa/router'
import Koa from 'koa'

const app = new Koa()
const router = new Router()
app.use((context, next) => {
  context.req.one = true
  return next()
})
app.use((context, next) => {
  context.req.two = true
  return next()
})
router.get('/favicon.ico', context => {
  context.status = 200
  context.body = ''
})
router.get('/users/:id', context => {
  context.body = `User: ${context.params.id}`
})
app.use(router.routes())
const server = app.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`))
