package httphead_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/budget"
)

// TestAHeadIsCountedUntilItArrives, and not only until the one before it was told of.
func TestAHeadIsCountedUntilItArrives(t *testing.T) {
	first, second := budget.New(1<<20, 0), budget.New(40*httphead.PerByte, 0)
	var m httphead.Meter
	one := m.Expect(first, 1000)
	if m.Count(10) != nil || first.Used() != 10*httphead.PerByte {
		t.Errorf("the first takes %d", first.Used())
	}
	two := m.Expect(second, 1000)
	if first.Used() != 0 {
		t.Errorf("of the first %d are left", first.Used())
	}
	if m.ArrivedAt(one) {
		t.Error("there was room for the first")
	}
	if m.Count(30) != nil || second.Used() != 30*httphead.PerByte {
		t.Errorf("the second takes %d", second.Used())
	}
	if m.Count(30) == nil || !m.ArrivedAt(two) {
		t.Error("there was no room for the second")
	}
	if second.Used() != 0 || m.ArrivedAt(one) {
		t.Errorf("of the second %d are left", second.Used())
	}
	if m.Count(30) != nil || first.Used()+second.Used() != 0 {
		t.Error("what is no head was counted")
	}
}
