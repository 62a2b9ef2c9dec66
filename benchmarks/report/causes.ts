// Why ours is behind, by the id of the row: only what was investigated. docs/performance.md has the measurements.

const RUNTIME_MEMORY =
  'A JavaScript runtime: 25 MB in each process before the first line of ours, code and heap behind it.'
const EASY_ONLY =
  'What is not an easy GET passes the main thread at both ends, which costs two events of the runtime each way.'
const SMALL_BODIES =
  'frp without its multiplexer moves each answer in the kernel and reads no head; ours does so only for longer bodies.'
const START = 'The runtime starts, and reads and compiles our sources.'
const COLD = 'Four hops find an event loop asleep and cold caches; the server parses two heads, rathole none.'
const FIRST_READ =
  'The head leaves with the first large read of each end, up to 512 KB: behind 20 B after 1.3 ms, behind 1 MB after 2.3.'
const FIRST_UPLOAD = 'The first 100 MB run through code that the runtime has not compiled yet.'
const NEW_LANES =
  'Half a second is 13 requests of each connection, and the first eight pass the main thread. Over 2 and 4 s: 1.12 and 1.32.'
const BOUNDED =
  'What arrives behind a lost packet fills the receive buffer: it is bounded at 3.3 MB, so that a stalled stream keeps at most 16 MB.'

export const CAUSES: Readonly<Record<string, string>> = {
  t1: COLD,
  t1cold: 'The runtime compiles our code in the first seconds; a compiled peer has nothing to compile.',
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
  start: START,
  'client-killed': START,
  'server-killed': START,
  pgbench: 'Ten sessions keep both cores busy; a small piece costs ours more system calls than rathole.',
  datagrams: 'Datagrams pass through the program at both ends.',
}
