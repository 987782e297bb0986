//go:build long

package expression

import "testing"

// TestAsPythonLong is TestAsPython with many more.
func TestAsPythonLong(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		compareDrawn(t, 100+seed, 20_000)
	}
}
