// The sample app on @tinyhttp/app; `bare` leaves out its extensions of request and response, `cjs` loads it as CommonJS does.

import { createRequire } from 'node:module'

const [, , way] = process.argv
const bare = way === 'bare'
const load = way === 'cjs' ? createRequire(import.meta.url) : name => import(name)
const { App } = await load('@tinyhttp/app')
const app = new App(bare ? { applyExtensions: (_req, _res, next) => next() } : {})
app.use((req, _res, next) => {
  req.one = true
  next()
})
app.use((req, _res, next) => {
  req.two = true
  next()
})
app.get('/favicon.ico', (_req, res) => void res.end())
app.get('/users/:id', (req, res) => void res.end(`User: ${req.params.id}`))
const server = app.listen(0, () => console.log(`listening ${server.address().port}`), '127.0.0.1')
