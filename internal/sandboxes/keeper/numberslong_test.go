//go:build long

package keeper

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
)

// TestLaunchesWhileNumbersWrap: each launch's starter leaves processes with the
// numbers of those before.
func TestLaunchesWhileNumbersWrap(t *testing.T) {
	if processtest.Inside(t) {
		numbersComeAgain(t, 2000)
	}
}
