//go:build long

package microvm_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
)

// TestChannelOverVsock runs what of the contract depends on the channel, with the real stage,
// carrier, keeper and agent; the monitor's API is what is known of Firecracker's.
func TestChannelOverVsock(t *testing.T) {
	enginetest.SuiteOfChannels(t, func(t *testing.T) *enginetest.Subject {
		t.Helper()
		return newStand(t).subject(t)
	})
}
