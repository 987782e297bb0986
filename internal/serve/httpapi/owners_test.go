package httpapi

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
)

// TestTaking: of two tokens that ask for one run at the same time, one gets it; once
// nothing is being made for it any more it is free again.
func TestTaking(t *testing.T) {
	var runs taking
	var got atomic.Int32
	var group sync.WaitGroup
	for _, token := range []string{"a", "b", "c", "d"} {
		group.Go(func() {
			if _, ok := runs.takeRun("run", token); ok {
				got.Add(1)
			}
		})
	}
	group.Wait()
	if got.Load() != 1 {
		t.Errorf("%d tokens got one run", got.Load())
	}
	runs = taking{}
	first, _ := runs.takeRun("run", "a")
	second, ok := runs.takeRun("run", "a")
	if !ok {
		t.Error("a token does not get its own run twice")
	}
	if _, ok := runs.takeRun("another", "b"); !ok {
		t.Error("a run keeps another from being taken")
	}
	first()
	if _, ok := runs.takeRun("run", "b"); ok {
		t.Error("a run is free before all is made")
	}
	second()
	if _, ok := runs.takeRun("run", "b"); !ok {
		t.Error("a run is never free again")
	}
}

// TestWhoseASandboxWas is answered from the log before whose it was is erased and after, alike.
func TestWhoseASandboxWas(t *testing.T) {
	log, err := audit.Open(t.TempDir(), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	keys := audit.NewOwnerKeys([]byte("the installation's"))
	for run, token := range map[string]string{"r1": "tk_ann", "r2": ""} {
		r := audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Run: run, Sandbox: "sb-" + run, User: "ann", Token: token, Detail: map[string]string{}}
		if key := keys.Of(run, token); key != "" {
			r.Detail[audit.DetailOwnerKey] = key
		}
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, outcome := range []audit.Outcome{audit.Started, audit.Restored} { // what stands in for a sandbox of ann's is not hers to see
		r := audit.Record{
			Kind: audit.KindSandbox, Outcome: outcome, Run: "r-" + string(outcome), Sandbox: "sb-r-" + string(outcome), Token: "tk_ann",
			Detail: map[string]string{admission.DetailStandsIn: "proof"},
		}
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		s := &desk{logReads: fairqueue.New(readsOfLog()), cfg: Config{Log: log, OwnerKeys: keys}}
		for _, c := range []struct {
			token, run         string
			owns, has, another bool
		}{
			{"tk_ann", "r1", true, true, false},
			{"tk_bob", "r1", false, false, true},
			{"tk_ann", "r2", false, false, true},
			{"tk_ann", "r3", false, false, false},
			{"tk_ann", "r-started", false, false, true},
			{"tk_ann", "r-restored", false, false, true},
		} {
			for range 2 { // the second is answered from memory
				owns, err := s.ownsSandbox(t.Context(), c.token, "sb-"+c.run)
				if err != nil || owns != c.owns {
					t.Errorf("%s: %s owns the sandbox of %s: %v, %v", when, c.token, c.run, owns, err)
				}
			}
			has, others, err := s.ownershipOfRun(t.Context(), c.run, c.token)
			if err != nil || has != c.has || others != c.another {
				t.Errorf("%s: run %s for %s: %v, %v, %v", when, c.run, c.token, has, others, err)
			}
		}
	}
	check("before")
	if _, err := log.Erase(t.Context(), audit.EraseAsk{Run: "r1", By: "dpo"}); err != nil {
		t.Fatal(err)
	}
	check("after it was erased")
}
