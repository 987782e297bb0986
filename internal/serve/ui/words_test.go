package ui_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// TestSize: few bytes are told as they are.
func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		-1: "-", 0: "-", 1: "1 B", 7: "7 B", 999: "999 B", 1_000: "1 kB", 48_600: "49 kB", 2_000_000: "2 MB", 1_500_000_000: "1.5 GB",
	} {
		if got := ui.Size(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}
