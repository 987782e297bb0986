package admission

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestADiskThatIsNotListedWhole: the record names each bound that was met and no other, also of what a
// guest makes up, and only a policy that says so ends the sandbox for it, because a package may lie
// where nobody looked.
func TestADiskThatIsNotListedWhole(t *testing.T) {
	all := []channel.InventoryBound{
		channel.BoundTime, channel.BoundDirectories, channel.BoundPackages, channel.BoundBytes, channel.BoundPath, channel.BoundName, channel.BoundUnread, "made up",
	}
	for name, c := range map[string]struct {
		found channel.Inventory
		says  []string
	}{
		"an earlier release's agent": {channel.Inventory{Truncated: true}, []string{"does not say why"}},
		"two bounds":                 {channel.Inventory{Truncated: true, Bounds: all[:2]}, []string{"longer than 20s", "more than 200000 directories"}},
		"a long path":                {channel.Inventory{Truncated: true, Bounds: all[4:5]}, []string{"path is longer than 16384 bytes"}},
		"a bound that is made up":    {channel.Inventory{Bounds: all[7:]}, []string{"not known here"}},
		"more than are recorded": {
			channel.Inventory{Packages: []channel.InstalledPackage{on("python a 1", "/a"), on("python b 1", "/b"), on("python c 1", "/c")}},
			[]string{"more than 2 packages that are not on record"},
		},
	} {
		for _, mode := range []string{"alarm", "end"} {
			h := newHouse(t, Limits{Inventory: 2})
			h.Unregister("sb1")
			h.policy = parse(t, "packages: { unaccounted: "+mode+" }")
			must(t, h.Register(h.run()))
			a, _ := h.Installed(t.Context(), "sb1", provenance.Disk{Found: c.found})
			got := h.records(t, audit.Exceeded)
			if len(got) == 0 {
				t.Fatalf("%s: nothing is on record", name)
			}
			says := got[0].Reason
			for _, part := range c.says {
				if !strings.Contains(says, part) {
					t.Errorf("%s: the record says %q, and not %q", name, says, part)
				}
			}
			if strings.Count(says, ";") != len(c.says)-1 || got[0].Rule != "quota.inventory" {
				t.Errorf("%s: the record says %q by %s", name, says, got[0].Rule)
			}
			if ends := a.End != ""; ends != (mode == "end") {
				t.Errorf("%s: under %s it ends: %q", name, mode, a.End)
			}
		}
	}
}
