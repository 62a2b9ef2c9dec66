// A gRPC server and its client on Node, without generated code: messages are texts. Run as `server [port]`, or `client <address> <root> <name>`, without TLS where `root` is empty.
// `breaker` with the same words prints what calls end with until one is taken, which stays open while another is made.

import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import grpc from '@grpc/grpc-js'

const text = { serialize: value => Buffer.from(value), deserialize: bytes => bytes.toString() }
const method = (name, requestStream, responseStream) => ({
  path: `/echo.Echo/${name}`,
  requestStream,
  responseStream,
  requestSerialize: text.serialize,
  requestDeserialize: text.deserialize,
  responseSerialize: text.serialize,
  responseDeserialize: text.deserialize,
})
const service = {
  one: method('One', false, false),
  many: method('Many', false, true),
  gather: method('Gather', true, false),
  both: method('Both', true, true),
  fail: method('Fail', false, false),
  slow: method('Slow', false, false),
}

if (process.argv[2] === 'server') {
  let cancelled = 0
  const server = new grpc.Server()
  server.addService(service, {
    one(call, done) {
      const trailer = new grpc.Metadata()
      trailer.set('x-trailer', `${call.metadata.get('x-asked')}`)
      if (call.request === 'cancelled') return done(null, `${cancelled}`, trailer)
      done(null, `one ${call.request.length}`, trailer)
    },
    async many(call) {
      for (let index = 0; index < 50; index++) {
        call.write(`${index} ${'x'.repeat(10_000)}`)
        if (index % 10 === 0) await pause(1)
      }
      call.end()
    },
    gather(call, done) {
      let bytes = 0
      call.on('data', message => {
        bytes += message.length
      })
      call.on('end', () => done(null, `gathered ${bytes}`))
    },
    both(call) {
      call.on('data', message => call.write(`both ${message}`))
      call.on('end', () => call.end())
    },
    fail(_call, done) {
      done({ code: grpc.status.FAILED_PRECONDITION, details: 'no, thanks: 100 % sure' })
    },
    slow(call) {
      call.on('cancelled', () => {
        cancelled++
      })
    },
  })
  server.bindAsync(
    `127.0.0.1:${process.argv[3] ?? 0}`,
    grpc.ServerCredentials.createInsecure(),
    (error, port) => {
      if (error) throw error
      console.log(port)
    },
  )
  process.stdin.resume().on('end', () => process.exit(0))
} else {
  const [, , , address, root, name] = process.argv
  const Client = grpc.makeGenericClientConstructor(service)
  const { credentials } = grpc
  const security = root === '' ? credentials.createInsecure() : credentials.createSsl(readFileSync(root))
  const client = new Client(address, security, {
    ...(root !== '' && { 'grpc.ssl_target_name_override': name }),
    'grpc.default_authority': name,
  })
  const unary = (call, message, options = {}) =>
    new Promise(resolve => {
      const metadata = new grpc.Metadata()
      metadata.set('x-asked', 'yes')
      const seen = {}
      const asked = client[call](message, metadata, options, (error, answer) => {
        seen.answer = error === null ? answer : `${grpc.status[error.code]} ${error.details}`
      })
      asked.on('status', ({ metadata: trailer }) => {
        seen.trailer = trailer.get('x-trailer').join()
        setImmediate(() => resolve(seen))
      })
    })
  const all = call =>
    new Promise((resolve, reject) => {
      const messages = []
      call.on('data', message => messages.push(message))
      call.on('error', reject)
      call.on('end', () => resolve(messages))
    })
  if (process.argv[2] === 'breaker') {
    let last = ''
    for (;;) {
      const call = client.both()
      const end = await new Promise(resolve => {
        call.on('data', () => resolve('open'))
        call.on('error', ({ code, details }) =>
          resolve(`${grpc.status[code]} ${/\d{3}$/.exec(details)?.[0] ?? details}`),
        )
        call.write('0')
      })
      if (end === 'open') break
      if (end !== last) console.log(end)
      last = end
      await pause(10)
    }
    console.log('the stream is open')
    console.log(`beside it: ${(await unary('one', 'abc')).answer}`)
    process.exit(0)
  }
  const seen = {}
  seen.one = await unary('one', 'x'.repeat(200_000))
  seen.many = (await all(client.many('go'))).length
  seen.gather = await new Promise((resolve, reject) => {
    const call = client.gather((error, answer) => (error === null ? resolve(answer) : reject(error)))
    for (let index = 0; index < 30; index++) call.write('y'.repeat(10_000))
    call.end()
  })
  // Each message is answered before the next one goes: nothing waits for the end of the request.
  seen.both = await new Promise((resolve, reject) => {
    const call = client.both()
    const answers = []
    call.on('data', message => {
      answers.push(message)
      if (answers.length < 5) call.write(`${answers.length}`)
      else call.end()
    })
    call.on('error', reject)
    call.on('end', () => resolve(answers.join()))
    call.write('0')
  })
  seen.fail = (await unary('fail', 'x')).answer
  seen.slow = (await unary('slow', 'x', { deadline: Date.now() + 300 })).answer.split(' ')[0]
  do seen.cancelled = (await unary('one', 'cancelled')).answer
  while (seen.cancelled === '0')
  seen.parallel = (await Promise.all(Array.from({ length: 150 }, () => unary('one', 'abc')))).filter(
    ({ answer }) => answer === 'one 3',
  ).length
  console.log(JSON.stringify(seen))
  process.exit(0)
}
