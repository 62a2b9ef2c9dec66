// Runs the benchmark suites, each in a process of its own: `bun benchmarks/index.ts [word …]`.
//
//   bun benchmarks/index.ts              all that have figures: two hours on two cores, with all peers
//   bun benchmarks/index.ts throughput   those whose name or file contains the word
//   bun benchmarks/index.ts --quick      a smoke run of every suite, every check and every attack, in minutes
//   bun benchmarks/index.ts --minutes 30 the rows that say most, in the time there is; --publish writes the documents from them
//
// Exits with 1 when ours was missing, failed or answered wrongly in any of them. A peer that is missing is left out.
// A new suite is one file and one line in `suites.ts`; docs/benchmarks.md explains what the file needs.

// Node 20 reads this as plain JavaScript, since it has no import: it says what is wrong in place of a stack.
if (process.versions.bun === undefined) {
  console.error('error: the benchmarks run on Bun: bun benchmarks/index.ts')
  process.exit(2)
}
void import(process.argv.includes('--publish') ? './report.ts' : './suites.ts')
