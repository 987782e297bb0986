package snapshots

import (
	"fmt"
	"testing"
)

// TestASnapshotIsPossibleBesideAnotherToken: one token's snapshots, however many and however small, leave
// another token room for its first.
func TestASnapshotIsPossibleBesideAnotherToken(t *testing.T) {
	t.Parallel()
	const most = 8
	s := open(t, t.TempDir(), func(c *Config) { c.Room.Count = most })
	make1(t, s, "control", "tok-bob", "")
	if _, err := s.Remove("tok-bob", "control"); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range most {
		id := fmt.Sprint("mallory", i)
		d, err := s.Begin("tok-mallory", id, 1<<20, true)
		if err != nil { // a share is at its end
			refused++
			continue
		}
		must(t, d.Drop())
		make1(t, s, id, "tok-mallory", "")
	}
	d, err := s.Begin("tok-bob", "bob", 1<<20, true)
	if err != nil {
		t.Fatalf("one token has %d small snapshots, another gets none: %v", most-refused, err)
	}
	must(t, d.Drop())
}
