package processtest

import (
	"os"
	"testing"
)

// NeedRoot ends a test that takes root: it is skipped where the tests run as somebody without its rights. Root itself
// was refused by the machine, by which nothing is shown: that is a failure. A nil error ends nothing.
func NeedRoot(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Geteuid() != 0:
		t.Skipf("takes root: %v", err)
	default:
		t.Fatalf("root can't do what the test needs: %v", err)
	}
}
