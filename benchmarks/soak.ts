// Long runs: `bun benchmarks/soak.ts [--minutes N] [--workers N]`, or under attack: `bun benchmarks/soak.ts --hostile`.

// Each parses its own flags; a second set of them in one program would only be in the way.
if (process.argv.includes('--hostile')) await import('./soak/hostile.ts')
else await import('./soak/endurance.ts')

export {}
