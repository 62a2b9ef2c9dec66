// The sample app on express.

import express from 'express'

const app = express()
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
const server = app.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`))
