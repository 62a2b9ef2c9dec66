// Why ours is behind, by the id of the row or the letters that it begins with. What was not measured begins with "We think".

/** `bun -e 'setTimeout(() => {}, 9_999)'` and its `smaps_rollup`: 23.6 MB resident, 1.8 MB of them private. */
const RUNTIME_MEMORY = 'An empty Bun process has 24 MB, 22 MB of them shared with other Bun processes.'
/** The table Start of docs/performance.md. */
const START = 'The runtime starts, then reads and compiles our code.'
/** `utime` and `stime` of both ends over 10 s without a visitor. */
const IDLE =
  'Timers and the collector of the runtime take 5 to 15 ms a second at each end, also without a request.'
/** `schedstat` of each thread, under load: docs/performance.md has the shares. */
const MAIN_THREAD =
  'The main threads of both ends take 66 to 78 % of the processor time of our processes, and their compiler threads most of the rest.'
const ENCRYPTS = 'The main thread of the server encrypts; it takes 58 % of the processor time of the server.'
const BUSY = 'Each request waits for a core at both ends; compiler threads of the runtime want one, too.'
const LANES =
  'We think: a lane serves the requests that are there in one turn, and the last response of a turn waits for the others.'
const BODIES =
  'We think: frp without its multiplexer moves each response in the kernel; ours does so only for longer bodies.'
const COLD = 'We think: four hops wake an event loop with cold caches, and the server parses two heads.'
const FIRST_READ = 'We think: each end sends the head with its first large read of up to 512 KB.'
const NEW_LANES = 'We think: the first eight requests of each connection pass the main thread.'
const SLOW_ROAD = 'We think: packets come one by one, and each wakes the event loop of an end.'

/** By the row, with its kind of figure or without; by its first word; by the letters in front; by its path. */
export const CAUSES: Readonly<Record<string, string>> = {
  t: LANES,
  w: LANES,
  browser: LANES,
  t1: COLD,
  r: COLD,
  'r1 processor time': IDLE,
  t500: NEW_LANES,
  t1000: NEW_LANES,
  new: NEW_LANES,
  first10m: FIRST_READ,
  slow100m: FIRST_READ,
  'wan-down': SLOW_ROAD,
  'wan-up': SLOW_ROAD,
  'wan-beside': SLOW_ROAD,
  'wan-small': COLD,
  site: BODIES,
  '1k10': BODIES,
  '10k10': BODIES,
  '64k10': BODIES,
  '100k10': BODIES,
  '1m10': BODIES,
  held: RUNTIME_MEMORY,
  load: RUNTIME_MEMORY,
  many: RUNTIME_MEMORY,
  start: START,
  startup: START,
  establishment: START,
  'client-killed': START,
  'server-killed': START,
  busy: BUSY,
  ordinary: MAIN_THREAD,
  tls: ENCRYPTS,
}
