//go:build long

package gvisor_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
)

// TestCreatesWhileNumbersWrap: the counter comes around every few creates.
func TestCreatesWhileNumbersWrap(t *testing.T) {
	if processtest.Inside(t) {
		numbersComeAgain(t, 300, 7)
	}
}
