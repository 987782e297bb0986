package processtest

import (
	"os"
	"testing"
)

// NeedRoot ends a test that takes root: it is skipped where the tests run as somebody without its rights. Root itself
// was refused by the machine, by which nothing is shown: that is a failure. A nil error ends nothing.
func NeedRoot(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case os.Geteuid() != 0:
		tb.Skipf("takes root: %v", err)
	default:
		tb.Fatalf("root can't do what the test needs: %v", err)
	}
}
