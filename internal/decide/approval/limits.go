package approval

import (
	"log/slog"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
)

// Limits bound what agents can put before people. A zero field is its default.
type Limits struct {
	PerRun   int // pending requests that one run began, a tree counting as one; 200
	PerToken int // that the runs of one token, or the host's own, began; a quarter of Pending
	Sure     int // that a token can have when three quarters of the queue are taken; 50, and never more than PerToken
	Pending  int // pending requests in all; 2,000
	// Releases is how many releases may wait for each of these requests, the members
	// of trees counted: so many times each of the shares; 5.
	Releases int
	Burst    time.Duration // asks of one run that are no further apart share a group; 2 minutes
}

const week = 7 * 24 * time.Hour

func (c Config) withDefaults() Config {
	if c.PendingExpires <= 0 {
		c.PendingExpires = week
	}
	if c.Limits.PerRun <= 0 {
		c.Limits.PerRun = 200
	}
	if c.Limits.Pending <= 0 {
		c.Limits.Pending = 2_000
	}
	if c.Limits.Releases <= 0 {
		c.Limits.Releases = 5
	}
	if c.Limits.PerToken <= 0 {
		c.Limits.PerToken = max(c.Limits.Pending/4, 1)
	}
	if c.Limits.Sure <= 0 {
		c.Limits.Sure = min(50, c.Limits.PerToken)
	}
	if c.AfterRun <= 0 {
		c.AfterRun = 24 * time.Hour
	}
	if c.Limits.Burst <= 0 {
		c.Limits.Burst = 2 * time.Minute
	}
	if c.Clock == nil {
		c.Clock = clock.Plain(time.Now)
	}
	if c.Mask == nil {
		c.Mask = func(text string) string { return text }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
