package sandbox

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
)

// TestAMessageOnItsWayIsNoHiding: descriptors that are in messages at one look alone end no sandbox, however short the disk is;
// those of two looks in a row do.
func TestAMessageOnItsWayIsNoHiding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held []bool // at each look
		ends bool
	}{"once": {[]bool{true}, false}, "now and then": {[]bool{true, false, true, false, true}, false}, "stays": {[]bool{false, true, true}, true}} {
		room := homeRoom{reserve: 1}
		ends := false
		for _, held := range c.held {
			room.lookAtFree(0)
			ends = held && room.noteUnseen("sb-1") || ends
		}
		if ends != c.ends {
			t.Errorf("%s: ended is %t", name, ends)
		}
	}
}

// TestWhyAHomeEndsItsSandbox: the reason is the one that holds, also where something is unseen as well.
func TestWhyAHomeEndsItsSandbox(t *testing.T) {
	t.Parallel()
	var room homeRoom
	for want, kept := range map[string]agenthome.Kept{
		"in 200001 files and directories":                          {Large: true, Entries: 200_001, Unseen: agenthome.Unseen{Messages: 3}},
		"its home  has more than 500 directories in each other":    {Large: true, Past: "has more than 500 directories in each other", Bytes: 1 << 20},
		"has 2048 MiB in 3 files":                                  {Large: true, Past: "has more than 500 directories in each other", Bytes: 2 << 30, Entries: 3},
		"than are looked at":                                       {Unread: true, Unseen: agenthome.Unseen{Messages: 3}},
		"3 open files in messages that nobody has received, where": {Unseen: agenthome.Unseen{Messages: 3}},
		"keeps 2 mapped files without a name, where":               {Unseen: agenthome.Unseen{Mapped: 2}},
		"keeps 1 sockets that no process has open, and 2 calls":    {Unseen: agenthome.Unseen{Sockets: 1, Calls: 2}},
	} {
		if why := room.whyEnded(kept, 1<<30).Error(); !strings.Contains(why, want) {
			t.Errorf("%+v: %q has no %q", kept, why, want)
		}
	}
}

// TestWhenADiskIsAllButFull: only some looks in a row at which hardly anything was free, and nobody was ended, lead to an end of one that is not
// known to be at fault.
func TestWhenADiskIsAllButFull(t *testing.T) {
	t.Parallel()
	const little, enough = 49, 50
	for name, c := range map[string]struct {
		free  []int64
		ended []bool
		ends  int
	}{
		"short alone":    {[]int64{enough, enough, enough, enough}, make([]bool, 4), 0},
		"for a moment":   {[]int64{little, little, enough, little, little}, make([]bool, 5), 0},
		"somebody ended": {[]int64{little, little, little, little}, []bool{false, false, true, false}, 0},
		"at last":        {[]int64{enough, little, little, little}, make([]bool, 4), 1},
		"with room":      {[]int64{little, little, 1000, little}, make([]bool, 4), 0},
		"again":          {[]int64{little, little, little, little, little, little}, make([]bool, 6), 2},
	} {
		room := homeRoom{reserve: 100}
		ends := 0
		for i, free := range c.free {
			if room.lookAtFree(free); room.isShort() && room.helpless(c.ended[i]) {
				ends++
			}
		}
		if ends != c.ends {
			t.Errorf("%s: %d ends, want %d", name, ends, c.ends)
		}
	}
}
