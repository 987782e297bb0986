package daemon

import "testing"

// TestOneSandboxLives: a sentence about one sandbox is about one.
func TestOneSandboxLives(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		1: "1 sandbox lives; end it first, or force the stop",
		2: "2 sandboxes live; end them first, or force the stop",
	} {
		if got := stillLive(n).Error(); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
