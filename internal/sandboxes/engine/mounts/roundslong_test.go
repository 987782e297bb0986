//go:build long

package mounts

// rounds of each race.
const rounds = 10_000
