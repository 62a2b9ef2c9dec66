// The app of `app.ts` in a process of its own: `app-process.ts [CERTIFICATE]`, with TLS when it gets one.

import type { Certificate } from '../peers/certificate.ts'
import { startApp } from './app.ts'

const [text] = process.argv.slice(2)
// Written by origins.ts.
const tls = text === undefined ? undefined : (JSON.parse(text) as Certificate)
console.log(`listening ${startApp(tls).port}`)
