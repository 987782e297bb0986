package copies

import (
	"sync"
	"testing"
)

// TestDrafts: of many images at once that each would fit, only so many are written as
// fit together; an owner's do not take another's room.
func TestDrafts(t *testing.T) {
	var d drafts
	var mu sync.Mutex
	var fit []func()
	var group sync.WaitGroup
	none := func() int64 { return 0 }
	for range 50 {
		group.Go(func() {
			if done, _, fits := d.takeRoom("a", 10, 35, none); fits {
				mu.Lock()
				defer mu.Unlock()
				fit = append(fit, done)
			}
		})
	}
	group.Wait()
	if len(fit) != 3 {
		t.Errorf("%d of 10 bytes each are written, with room for 35", len(fit))
	}
	if _, used, fits := d.takeRoom("b", 10, 35, func() int64 { return 30 }); fits || used != 40 {
		t.Errorf("another's, who keeps 30: %d, %v", used, fits)
	}
	for _, done := range fit {
		done()
	}
	if done, used, fits := d.takeRoom("a", 35, 35, none); !fits || used != 35 {
		t.Errorf("after all were written: %d, %v", used, fits)
	} else if done(); len(d.bytes) != 0 {
		t.Errorf("left: %v", d.bytes)
	}
}
