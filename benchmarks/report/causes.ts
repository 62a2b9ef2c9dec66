// Why ours is behind, by the id of the row or the letters that it begins with: only what was investigated. docs/performance.md has the measurements.

const RUNTIME_MEMORY = 'A JavaScript runtime uses 25 MB in each process before our first line runs.'
const EASY_ONLY =
  'Only small GET requests avoid the main thread of both ends, which costs two events of the runtime in each direction.'
const SMALL_BODIES =
  'frp without its multiplexer moves each response in the kernel and reads no head; ours does so only for longer bodies.'
const START = 'The runtime starts, then reads and compiles our code.'
const COLD =
  'Four hops wake an event loop with cold caches; the server parses two heads, and rathole parses none.'
const FIRST_READ = 'Each end sends the head with its first large read of up to 512 KB.'
const FIRST_UPLOAD = 'The runtime has not compiled our code yet during the first 100 MB.'
const NEW_LANES = 'The first eight requests of each connection pass the main thread.'
const BOUNDED =
  'Bytes after a lost packet fill the receive buffer. It is limited to 3.3 MB, so that a stalled stream holds at most 16 MB.'

export const CAUSES: Readonly<Record<string, string>> = {
  t1: COLD,
  t1cold: 'The runtime compiles our code in the first seconds; the peer is compiled already.',
  t500: NEW_LANES,
  t1000: NEW_LANES,
  r400: COLD,
  r1000: COLD,
  r4000: COLD,
  upcold: FIRST_UPLOAD,
  first10m: FIRST_READ,
  slow100m: FIRST_READ,
  'wan-down 100 ms, 1 % loss': BOUNDED,
  'wan-up 100 ms, 1 % loss': BOUNDED,
  post: EASY_ONLY,
  post10: EASY_ONLY,
  two: 'A head without its body leaves the accelerator, and the next request enters it again.',
  node: EASY_ONLY,
  node2: EASY_ONLY,
  go: EASY_ONLY,
  bun: EASY_ONLY,
  chunked: EASY_ONLY,
  '10k10': SMALL_BODIES,
  '64k10': SMALL_BODIES,
  '100k10': SMALL_BODIES,
  '1m10': SMALL_BODIES,
  held1000: RUNTIME_MEMORY,
  held10000: RUNTIME_MEMORY,
  load: RUNTIME_MEMORY,
  len: 'Every byte passes the main thread of both ends. rathole and frp read no head.',
  tls: 'The main thread encrypts, and sends each response by a call of its own.',
  busy: 'Each request wakes the event loops of both ends, and each waits for a core.',
  echo: EASY_ONLY,
  'wan-small': COLD,
  start: START,
  startup: START,
  establishment: START,
  'client-killed': START,
  'server-killed': START,
  retries:
    'Each connection to the app that closes ends a lane, and the next requests of its visitor pass the main thread.',
  pgbench: 'Ten sessions keep both cores busy, and a small piece costs ours more system calls than rathole.',
  datagrams: 'Datagrams pass through the program at both ends.',
}
