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
const TAKES_TURNS =
  'A lane serves the requests that are there in one turn: the last response of a turn waits for the others.'
const BULK = 'The main thread moves the first 256 KB of a body, before a thread of lower priority takes over.'
const SLOW_ROAD = 'Packets come one by one, and each wakes the event loop of an end.'
const IDLE =
  'Timers and the collector of the runtime take 5 to 15 ms a second at each end, also without a request.'
const NEW_LANES = 'The first eight requests of each connection pass the main thread.'
const BOUNDED =
  'Bytes after a lost packet fill the receive buffer. It is limited to 3.3 MB, so that a stalled stream holds at most 16 MB.'

/** By the row, with its kind of figure or without; by its first word; by the letters in front; by its path. */
export const CAUSES: Readonly<Record<string, string>> = {
  t: TAKES_TURNS,
  w: TAKES_TURNS,
  t1: COLD,
  t1cold: 'The runtime compiles our code in the first seconds; the peer is compiled already.',
  t500: NEW_LANES,
  t1000: NEW_LANES,
  r: COLD,
  'r1 processor time': IDLE,
  new: NEW_LANES,
  upcold: FIRST_UPLOAD,
  first10m: FIRST_READ,
  slow100m: FIRST_READ,
  up: BULK,
  down: BULK,
  beside: BULK,
  'wan-down 100 ms, 1 % loss': BOUNDED,
  'wan-up 100 ms, 1 % loss': BOUNDED,
  'wan-down': SLOW_ROAD,
  'wan-up': SLOW_ROAD,
  'wan-small': COLD,
  'wan-beside': SLOW_ROAD,
  browser: TAKES_TURNS,
  site: SMALL_BODIES,
  two: 'A head without its body leaves the accelerator, and the next request enters it again.',
  node: EASY_ONLY,
  go: EASY_ONLY,
  bun: EASY_ONLY,
  '1k10': SMALL_BODIES,
  '10k10': SMALL_BODIES,
  '64k10': SMALL_BODIES,
  '100k10': SMALL_BODIES,
  '1m10': SMALL_BODIES,
  '10m10': BULK,
  held: RUNTIME_MEMORY,
  load: RUNTIME_MEMORY,
  many: RUNTIME_MEMORY,
  start: START,
  startup: START,
  establishment: START,
  'client-killed': START,
  'server-killed': START,
  cut: 'The client waits before it dials again, so that a server that restarts is not overrun.',
  carriertls: 'The main thread encrypts the connection between both ends; there are no lanes.',
  busy: 'Each request wakes the event loops of both ends, and each waits for a core.',
  retries:
    'Each connection to the app that closes ends a lane, and the next requests of its visitor pass the main thread.',
  trips: 'Each piece wakes a thread at both ends, and each end is a runtime with more threads than its peer.',
  pgbench: 'Ten sessions keep both cores busy, and a small piece costs ours more system calls than rathole.',
  datagrams: 'Datagrams pass through the program at both ends.',
  udp: 'Datagrams pass through the program at both ends.',
  syscalls: 'Main thread and lanes of both ends tell each other what they take and give back.',
  ordinary: 'Every byte passes the main thread of both ends. rathole and frp read no head.',
  tls: 'The main thread encrypts, and sends each response by a call of its own.',
}
