package admission

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestALifesRecordOutlivesAnAppendThatFailed: what has happened to a sandbox is on record although the
// log did not take that once, at the latest as the sandbox ends. A refusal is the control.
func TestALifesRecordOutlivesAnAppendThatFailed(t *testing.T) {
	froze := func(o audit.Outcome) func(*testing.T, *Controller) error {
		return func(t *testing.T, c *Controller) error {
			t.Helper()
			return c.SandboxFroze(t.Context(), "sb1", FreezeChange{Outcome: o, Took: time.Second})
		}
	}
	for outcome, happens := range map[audit.Outcome]func(*testing.T, *Controller) error{
		audit.Blocked: func(t *testing.T, c *Controller) error { // the control
			t.Helper()
			_, err := c.HostRefused(t.Context(), door.HostRefusal{Sandbox: "sb1", Name: "evil.example", Port: 443, Rule: "network.host", Reason: "no"})
			return err
		},
		audit.Frozen: froze(audit.Frozen), audit.Thawed: froze(audit.Thawed), audit.Paused: froze(audit.Paused), audit.Resumed: froze(audit.Resumed),
		audit.Failed: froze(audit.Failed),
		audit.Extended: func(t *testing.T, c *Controller) error {
			t.Helper()
			return c.SandboxExtended(t.Context(), "sb1", time.Hour, 0, "")
		},
		audit.Alarm: func(t *testing.T, c *Controller) error { // as its last command ended
			t.Helper()
			_, err := c.InventoryUnknown(t.Context(), "sb1", "it does not answer", true)
			return err
		},
		audit.Adopted: func(t *testing.T, c *Controller) error {
			t.Helper()
			return c.SandboxAdopted(t.Context(), "sb1", "running")
		},
		audit.Installed: func(t *testing.T, c *Controller) error { // what the last command left, and the template brings
			t.Helper()
			found := channel.Inventory{Packages: []channel.InstalledPackage{{Ecosystem: "python", Name: "left", Version: "1.0", Path: "/workspace/left"}}}
			_, err := c.Installed(t.Context(), "sb1", provenance.Disk{Found: found})
			return err
		},
	} {
		t.Run(string(outcome), func(t *testing.T) {
			log := &approvaltest.Log{}
			c := New(Config{Log: log})
			must(t, c.Register(Run{Sandbox: "sb1", Run: "r1", Policy: parse(t, "version: \"1\"\n")}))
			must(t, c.SandboxStarted(t.Context(), "sb1"))
			log.FailWhen(func(audit.Record) error { return io.ErrShortWrite })
			if happens(t, c) == nil {
				t.Fatal("INCONCLUSIVE: the log took it")
			}
			log.FailWhen(nil)
			must(t, c.SandboxEnded(t.Context(), "sb1", "over"))
			n := 0
			for _, r := range log.All() {
				if r.Outcome == outcome {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%d records of it when the sandbox has ended", n)
			}
		})
	}
}

// TestASandboxEndsForWhatTheLogDidNotTake: packages.unaccounted: end holds although the alarm is not on
// record yet; a policy that only alarms is the control. All that the last inventory found is on record
// later, each once, also if another finds it again.
func TestASandboxEndsForWhatTheLogDidNotTake(t *testing.T) {
	const many = 300
	var found channel.Inventory
	for i := range many {
		found.Packages = append(found.Packages, channel.InstalledPackage{Ecosystem: "python", Name: fmt.Sprint("p", i), Version: "1.0", Path: "/workspace"})
	}
	list := func(c *Controller) (Accounted, error) {
		return c.Installed(t.Context(), "sb1", provenance.Disk{Found: found})
	}
	unknown := func(c *Controller) (Accounted, error) {
		return c.InventoryUnknown(t.Context(), "sb1", "it does not answer", true)
	}
	for then, ends := range map[string]bool{"end": true, "alarm": false} {
		for name, finds := range map[string]func(*Controller) (Accounted, error){"a list": list, "no list": unknown} {
			t.Run(then+" "+name, func(t *testing.T) {
				log := &approvaltest.Log{}
				c := New(Config{Log: log})
				must(t, c.Register(Run{Sandbox: "sb1", Run: "r1", Policy: parse(t, "packages: { unaccounted: "+then+" }\n")}))
				must(t, c.SandboxStarted(t.Context(), "sb1"))
				log.FailWhen(func(audit.Record) error { return io.ErrShortWrite })
				accounted, err := finds(c)
				if err == nil {
					t.Fatal("INCONCLUSIVE: the log took it")
				}
				if got := accounted.End != ""; got != ends || c.MustEnd("sb1") != accounted.End {
					t.Errorf("the sandbox is to be ended: %t, for %q", got, accounted.End)
				}
				log.FailWhen(nil)
				if name == "a list" {
					_, err := finds(c)
					must(t, err)
				}
				must(t, c.SandboxEnded(t.Context(), "sb1", "over"))
				installed, alarms := map[string]int{}, 0
				for _, r := range log.All() {
					if r.Outcome == audit.Installed {
						installed[r.Package]++
					}
					if r.Outcome == audit.Alarm {
						alarms += max(1, r.Count)
					}
				}
				want := 1
				if name == "a list" {
					want = many
				}
				if alarms != want || name == "a list" && len(installed) != many {
					t.Errorf("%d alarms, %d installed", alarms, len(installed))
				}
				for name, n := range installed {
					if n != 1 {
						t.Errorf("%s is installed %d times", name, n)
					}
				}
			})
		}
	}
}

// TestAnEndIsToldAsItWas: the end of a command and of a file that the log did not take is on record later,
// once, with how it ended; until then the door says that it owes it, of a sandbox that has ended as well.
func TestAnEndIsToldAsItWas(t *testing.T) {
	for name, gone := range map[string]bool{"of a sandbox that lives": false, "of one that has ended": true} {
		t.Run(name, func(t *testing.T) {
			log := &approvaltest.Log{}
			c := New(Config{Log: log})
			must(t, c.Register(Run{Sandbox: "sb1", Run: "r1", Policy: parse(t, "version: \"1\"\n")}))
			must(t, c.SandboxStarted(t.Context(), "sb1"))
			_, err := c.CommandAs(t.Context(), "sb1", "cmd-1", Asked{Argv: []string{"false"}})
			must(t, err)
			file, err := c.FileBegins(t.Context(), "sb1", channel.File{Op: channel.FileWrite, Path: "/workspace/f"})
			must(t, err)
			log.FailWhen(func(audit.Record) error { return io.ErrShortWrite })
			if c.CommandFinished(t.Context(), "sb1", "cmd-1", channel.Exit{Code: 3}) == nil || file.End(t.Context(), FileEnd{Outcome: audit.Finished, SHA256: "aa"}) == nil {
				t.Fatal("INCONCLUSIVE: the log took it")
			}
			if gone {
				if c.SandboxEnded(t.Context(), "sb1", "over") == nil {
					t.Fatal("INCONCLUSIVE: the log took the end")
				}
				c.Unregister("sb1")
			}
			owed := func() (both [2]bool) {
				return [2]bool{c.OwesEnd(audit.KindCommand, "sb1", 1, "cmd-1"), c.OwesEnd(audit.KindFile, "sb1", 2, "")}
			}
			if owed() != [2]bool{true, true} || c.FileUnderWay(2) {
				t.Errorf("owed: %v, the file is under way: %t", owed(), c.FileUnderWay(2))
			}
			log.FailWhen(nil)
			c.WriteOverdue(t.Context())
			if owed() != [2]bool{} {
				t.Errorf("owed: %v, when the log has them", owed())
			}
			commands, files := 0, 0
			for _, r := range log.All() {
				switch {
				case r.Kind == audit.KindCommand && r.Outcome == audit.Finished:
					if commands++; r.Exit == nil || *r.Exit != 3 {
						t.Errorf("the command ended with %+v", r)
					}
				case r.Kind == audit.KindFile && r.Outcome != audit.Started:
					if files++; r.Outcome != audit.Finished || r.Detail[audit.DetailContentSHA256] != "aa" {
						t.Errorf("the file ended with %+v", r)
					}
				}
			}
			if commands != 1 || files != 1 {
				t.Errorf("%d ends of the command, %d of the file", commands, files)
			}
		})
	}
}

// TestWhatTheBookDoesNotKeepIsFoundAgain: of more packages than a book keeps records of, while the log takes
// none, those that it does not keep are found by the next inventory; and there is room left for the end of the
// command after which it was made.
func TestWhatTheBookDoesNotKeepIsFoundAgain(t *testing.T) {
	const many = 3_000
	log := &approvaltest.Log{}
	c := New(Config{Log: log})
	must(t, c.Register(Run{Sandbox: "sb1", Run: "r1", Policy: parse(t, "packages: { unaccounted: record }\n")}))
	must(t, c.SandboxStarted(t.Context(), "sb1"))
	_, err := c.CommandAs(t.Context(), "sb1", "cmd-1", Asked{Argv: []string{"false"}})
	must(t, err)
	var found channel.Inventory
	for i := range many {
		found.Packages = append(found.Packages, channel.InstalledPackage{Ecosystem: "python", Name: fmt.Sprint("p", i), Version: "1.0", Path: "/workspace"})
	}
	log.FailWhen(func(audit.Record) error { return io.ErrShortWrite })
	if _, err := c.Installed(t.Context(), "sb1", provenance.Disk{Found: found}); err == nil {
		t.Fatal("INCONCLUSIVE: the log took it")
	}
	if c.CommandFinished(t.Context(), "sb1", "cmd-1", channel.Exit{Code: 3}) == nil {
		t.Fatal("INCONCLUSIVE: the log took it")
	}
	if !c.OwesEnd(audit.KindCommand, "sb1", 1, "cmd-1") {
		t.Error("there is no room for the end of the command")
	}
	log.FailWhen(nil)
	_, err = c.Installed(t.Context(), "sb1", provenance.Disk{Found: found})
	must(t, err)
	must(t, c.SandboxEnded(t.Context(), "sb1", "over"))
	installed := map[string]int{}
	for _, r := range log.All() {
		if r.Outcome == audit.Installed {
			installed[r.Package]++
		}
	}
	if len(installed) != many {
		t.Errorf("%d of %d packages are on record", len(installed), many)
	}
	for name, n := range installed {
		if n != 1 {
			t.Fatalf("%s is installed %d times", name, n)
		}
	}
}
