package egress_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// countingDoor knows what sandboxes have carried.
type countingDoor struct {
	fakeDoor
	carried map[string]int64
}

func (d *countingDoor) Name(ctx context.Context, ask door.NameAsk) (door.NameAnswer, error) {
	a, err := d.fakeDoor.Name(ctx, ask)
	a.Carried = d.carried[ask.Sandbox]
	return a, err
}

// TestBytesCarriedBefore: what another gateway counted counts here.
func TestBytesCarriedBefore(t *testing.T) {
	at := newPlace(t)
	d := &countingDoor{fakeDoor: fakeDoor{allowed: hosts()}, carried: map[string]int64{"sb-much": 100, "sb-less": 99}}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{Bytes: 100}, pinned(t, at.Addr()), d)
	ask := channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: 443}
	if r := open(t, dial(), "sb-much", ask); r.OK || !strings.Contains(r.Error, "as many bytes as one may") {
		t.Errorf("all is used up: %+v", r)
	}
	for _, sandbox := range []string{"sb-less", "sb-none"} { // the controls
		if r := open(t, dial(), sandbox, ask); !r.OK {
			t.Errorf("%s: %+v", sandbox, r)
		}
	}
	d.carried["sb-much"] = 0 // what the daemon tells later is no less
	if r := open(t, dial(), "sb-much", ask); r.OK {
		t.Errorf("what was counted is forgotten: %+v", r)
	}
	if r := open(t, dial(), "sb-less", ask); !r.OK {
		t.Errorf("what the daemon tells twice is counted twice: %+v", r)
	}
	if len(d.rejected) != 2 || !strings.HasPrefix(d.rejected[0], "quota.bytes api.example:443 ") {
		t.Errorf("on record are %q", d.rejected)
	}
}
