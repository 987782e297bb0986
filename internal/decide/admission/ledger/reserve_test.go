package ledger

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestTheLedgerKeepsHalfItsRoom: what a plan remembers beside the ledger takes no room that the next page needs, which nobody would be
// shown otherwise.
func TestTheLedgerKeepsHalfItsRoom(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	l := New(Limits{Edges: 100, Requirements: 100, EdgesPerParent: 100, Remembered: most}, NewBudget(most, most), nil, nil)
	taken := 0
	for l.Reserve(most / 16) {
		taken++
	}
	if taken != 8 {
		t.Errorf("%d sixteenths are taken beside the ledger", taken)
	}
	page := &Page{digest: "d", epoch: "e", versions: []string{"1.0.0"}, says: []uint8{sayListed}}
	if _, err := l.ShowPage(pkgref.Ref{Ecosystem: pkgref.Node, Name: "p"}, Origin{}, page, false); err != nil {
		t.Errorf("a page is not shown: %v", err)
	}
	if l.Reserve(-most / 16); !l.Reserve(most / 16) {
		t.Error("what was given back can't be taken again")
	}
}
