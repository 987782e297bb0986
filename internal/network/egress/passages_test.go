package egress

import (
	"fmt"
	"testing"
)

// TestPassagesAreLookedAtBySandbox: who asks for those of one sandbox, as each end does again and again, gets these, whatever others have; and of
// one that has none any more nothing is kept.
func TestPassagesAreLookedAtBySandbox(t *testing.T) {
	ps := &passages{}
	var all []*passage
	for sandbox := range 3 {
		for seq := range 4 {
			p := &passage{sandbox: fmt.Sprintf("sb-%d", sandbox), seq: uint64(seq)}
			ps.addPassage(p)
			all = append(all, p)
		}
	}
	if n := len(ps.bySandbox()["sb-1"]); n != 4 || len(ps.bySandbox()) != 3 || len(ps.passagesOf("sb-1")) != 4 || len(ps.passagesOf("sb-9")) != 0 {
		t.Errorf("%d of one sandbox: %v", n, ps.bySandbox())
	}
	for _, p := range all {
		ps.removePassage(p)
		ps.removePassage(p)
	}
	if len(ps.open) != 0 {
		t.Errorf("kept are %v", ps.open)
	}
}
