//go:build !long

package mounts

// rounds of each race.
const rounds = 300
