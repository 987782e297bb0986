//go:build leaky

package approval

import (
	"fmt"
	"sync/atomic"
)

// lastID counts the ids of all owners.
var lastID atomic.Int64

// newID leaks: it counts, so that each request tells how many others there were. It is for
// test/isolation, which must find it.
func newID(prefix string) string { return fmt.Sprintf("%s%06d", prefix, lastID.Add(1)) }
