package httpapi

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
)

// TestARunThatBeganLongAgoIsSomebodys: a run whose beginning is in a segment that was sealed and moved
// away is not free for another token, which would read what the log still has of it.
func TestARunThatBeganLongAgoIsSomebodys(t *testing.T) {
	for name, indexed := range map[string]bool{"by the log": false, "by the index": true} {
		t.Run(name, func(t *testing.T) { runsThatBeganLongAgo(t, indexed) })
	}
}

func runsThatBeganLongAgo(t *testing.T, indexed bool) {
	t.Helper()
	dir := t.TempDir()
	log, err := audit.Open(dir, audit.Options{SegmentBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	add := func(r audit.Record) {
		t.Helper()
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	add(audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Run: "nightly", Sandbox: "sb1", User: "ann", Token: "tk_ann"})
	for i := range 3 {
		add(audit.Record{Kind: audit.KindNetwork, Outcome: audit.Blocked, Run: "nightly", Sandbox: "sb1", Token: "tk_ann", Reason: fmt.Sprint("a secret of ann's, ", i)})
	}
	file, run := filepath.Join(t.TempDir(), "index.db"), "nightly"
	whose := func(token string) (has, others bool) {
		cfg := Config{Log: log, OwnerKeys: audit.NewOwnerKeys([]byte("the installation's"))}
		if indexed {
			cfg.Audit.Index = index.New(file, log, index.Options{})
		}
		s := &desk{logReads: fairqueue.New(readsOfLog()), cfg: cfg}
		has, others, err := s.ownershipOfRun(t.Context(), run, token)
		if err != nil {
			t.Fatal(err)
		}
		if indexed {
			if err := cfg.Audit.Index.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return has, others
	}
	add(audit.Record{Kind: audit.KindCommand, Outcome: audit.Blocked, Run: "calls", Sandbox: "call-1", User: "ann", Reason: "a secret of the host's"})
	if has, others := whose("tk_bob"); has || !others {
		t.Fatalf("the control: bob's %v, another's %v", has, others)
	}
	sealed, err := log.Seal(t.Context(), audit.SealBefore{Record: 1}, "ann")
	if err != nil || len(sealed.Segments) != 1 {
		t.Fatalf("%+v, %v", sealed, err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, sealed.Segments[0].File), filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
	if log, err = audit.Open(dir, audit.Options{}); err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	still := 0
	for r, err := range log.Records(t.Context(), audit.Filter{Run: "nightly"}) {
		if err != nil {
			t.Fatal(err)
		}
		still += len(r.Reason)
	}
	if still == 0 {
		t.Fatal("INCONCLUSIVE: no record of the run is here any more")
	}
	if has, others := whose("tk_bob"); has || !others {
		t.Error("the run is nobody's, so that bob may take it, and read the records that are still here")
	}
	run = "calls"
	if has, others := whose("tk_bob"); has || !others {
		t.Error("a run of the host's calls is nobody's")
	}
	run = "of nobody"
	if has, others := whose("tk_bob"); has || others {
		t.Errorf("a run that is on no record is bob's: %v, another's: %v", has, others)
	}
	run = "nightly"
	if has, others := whose("tk_ann"); !has || others {
		t.Errorf("ann has it no more: hers %v, another's %v", has, others)
	}
}
