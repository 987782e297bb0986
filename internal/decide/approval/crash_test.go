package approval_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestStoreFails: what is on record and could not be stored counts as soon as
// anything is asked; until it can be stored nothing is granted.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	r := in.ask(t, ask("r1", wheel("sha256:aa")))
	in.approve(t, approval.ScopeEverywhere, 0, r.ID)
	in.store.Break(errors.New("no space left"))
	if _, err := in.Revoke(t.Context(), "bob", r.ID, ""); !errors.Is(err, fault.ErrUnavailable) {
		t.Fatal(err)
	}
	_, _, err := in.Grants(t.Context(), rich(), asks("r1", ""))
	if !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("with a store that lacks the revocation there is an answer: %v", err)
	}
	if _, err := in.Ask(t.Context(), ask("r2", wheel("sha256:aa"))); !errors.Is(err, fault.ErrUnavailable) {
		t.Error(err)
	}
	in.store.Break(nil)
	if len(in.granted(t, "r1")) != 0 {
		t.Error("the revocation was lost")
	}
	if diff := cmp.Diff([]audit.Outcome{audit.Pending, audit.Approved, audit.Expired}, in.outcomes()); diff != "" {
		t.Error(diff)
	}
}

// TestUnrecorded: what the log does not take does not happen.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	r := in.ask(t, ask("r1", wheel("sha256:aa")))
	in.log.FailWhen(func(audit.Record) error { return errors.New("no space left") })
	_, errs := in.Ask(t.Context(), named("other"))
	_, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{r.ID}, State: approval.Approved})
	_, err2 := in.Ask(t.Context(), ask("r2", wheel("sha256:aa")))
	for _, err := range []error{errs, err, err2} {
		if !errors.Is(err, fault.ErrUnavailable) {
			t.Error(err)
		}
	}
	in.log.FailWhen(nil)
	if all := listed(t, in); len(all) != 1 || all[0].State != approval.Pending || all[0].Asked != 1 {
		t.Errorf("%+v", all)
	}
}

// TestKilledBetween: the daemon dies after the record and before the store, at
// each change of a life; the next one has what the log has.
func TestKilledBetween(t *testing.T) {
	t.Parallel()
	steps := []func(*installation, string) error{
		func(in *installation, _ string) error {
			return second(in.Ask(context.Background(), ask("r1", wheel("sha256:aa"))))
		},
		func(in *installation, _ string) error {
			return second(in.Ask(context.Background(), ask("r2", sdist("sha256:bb"))))
		},
		func(in *installation, id string) error {
			return second(in.Answer(context.Background(), "bob", approval.Verdict{IDs: []string{id}, State: approval.Approved, Scope: approval.ScopePolicy}))
		},
		func(in *installation, id string) error { return second(in.Revoke(context.Background(), "bob", id, "")) },
		func(in *installation, _ string) error {
			return second(in.Ask(context.Background(), ask("r1", wheel("sha256:aa"))))
		},
		func(in *installation, _ string) error {
			return second(in.Ask(context.Background(), ask("r1", wheel("sha256:ee"))))
		}, // supersedes: two records
	}
	for die := range steps {
		in := install(t, approval.Limits{})
		id := ""
		for i, step := range steps[:die+1] {
			if i == die {
				in.store.Break(errors.New("killed"))
			}
			if err := step(in, id); (err != nil) != (i == die) {
				t.Fatalf("step %d of %d: %v", i, die, err)
			}
			if all, _, err := in.List(t.Context(), approval.Filter{}); err == nil && i == 0 {
				id = all[0].ID
			}
		}
		in.Close() // its memory is lost
		in.store.Break(nil)
		in.open(t)
		got := listed(t, in)
		reference := &installation{log: in.log, store: approvaltest.NewMemory()}
		reference.open(t)
		if diff := cmp.Diff(listed(t, reference), got); diff != "" {
			t.Errorf("killed at step %d:\n%s", die, diff)
		}
		if want := map[int]int{4: 2, 5: 3}[die]; len(got) != max(want, 1) {
			t.Errorf("killed at step %d: %d requests", die, len(got))
		}
		reference.Close()
	}
}

func second[T any](_ T, err error) error { return err }

// TestOtherLog: a store that is not of this log is made anew.
func TestOtherLog(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	r := in.ask(t, ask("r1", wheel("sha256:aa")))
	in.approve(t, approval.ScopeEverywhere, 0, r.ID)
	in.Close()
	in.log = &approvaltest.Log{}
	in.open(t)
	if len(listed(t, in)) != 0 || len(in.granted(t, "r1")) != 0 {
		t.Error("approvals that no log has hold")
	}
}

// world is the model of the property test: what people were shown and what they
// meant, remembered beside the queue.
type world struct {
	in      *installation
	t       *rapid.T
	base    *testing.T
	shown   map[string][]string  // by request: digests that were shown when it was approved
	ends    map[string]time.Time // by request: when an answer that was given ends
	revoked map[string]bool      // Revoke returned nil
	scope   map[string]approval.Scope
	runs    map[string][]string // by request: that had asked when it was answered
	asked   map[string][]string
	tried   map[string][]string // by release: asks that failed, maybe after their record
	ids     []string
}

// TestNeverMoreThanShown: whatever the order of asks, answers, expiries, crashes
// and failures, an approval admits only digests that were shown, to whom it was
// given, for as long as it was given.
func TestNeverMoreThanShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) { // a bubble has no deadline to ask for
			w := &world{
				in: &installation{log: &approvaltest.Log{}, store: approvaltest.NewMemory()}, t: rt, base: t,
				shown: map[string][]string{}, ends: map[string]time.Time{}, revoked: map[string]bool{},
				scope: map[string]approval.Scope{}, runs: map[string][]string{}, asked: map[string][]string{}, tried: map[string][]string{},
			}
			w.in.open(t)
			defer func() { w.in.Close() }()
			rt.Repeat(map[string]func(*rapid.T){
				"ask": w.ask, "approve": w.answer, "revoke": w.revoke, "crash": w.crash, "sleep": w.sleep, "logFails": w.failLog, "storeFails": w.failStore, "": w.check,
			})
			w.in.log.FailWhen(nil)
			w.in.store.Break(nil)
			got := listed(t, w.in)
			reference := &installation{log: w.in.log, store: approvaltest.NewMemory()}
			reference.open(t)
			defer reference.Close()
			if diff := cmp.Diff(listed(t, reference), got); diff != "" {
				rt.Fatalf("the log tells another story:\n%s", diff)
			}
		})
	})
}

func (w *world) ask(rt *rapid.T) {
	run := rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(rt, "run")
	a := ask(run)
	a.Package.Version = rapid.SampledFrom([]string{"1.0", "2.0"}).Draw(rt, "version")
	a.Upstream = rapid.SampledFrom([]string{"https://one.example/", "https://two.example/"}).Draw(rt, "upstream")
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a.whl", "b.whl", "c.tar.gz"}), 1, 3, rapid.ID).Draw(rt, "files") {
		digest := rapid.SampledFrom([]string{"sha256:1", "sha256:2", "md5:1"}).Draw(rt, "digest")
		a.Files = append(a.Files, approval.File{Name: name, Digests: []string{digest + name}})
	}
	r, err := w.in.Ask(context.Background(), a)
	if err != nil {
		release := a.Package.Version + " " + a.Upstream
		w.tried[release] = append(w.tried[release], run)
		return
	}
	w.asked[r.ID] = append(w.asked[r.ID], run)
	if !slices.Contains(w.ids, r.ID) {
		w.ids = append(w.ids, r.ID)
	}
}

func (w *world) some(rt *rapid.T) string {
	if len(w.ids) == 0 {
		return "ap-none"
	}
	return rapid.SampledFrom(w.ids).Draw(rt, "id")
}

func (w *world) answer(rt *rapid.T) {
	id := w.some(rt)
	r, err := w.in.Get(context.Background(), id)
	if err != nil {
		return
	}
	v := approval.Verdict{
		IDs: []string{id}, State: rapid.SampledFrom([]approval.State{approval.Approved, approval.Approved, approval.Denied}).Draw(rt, "state"),
		Scope: rapid.SampledFrom([]approval.Scope{approval.ScopeRun, approval.ScopePolicy, approval.ScopeEverywhere}).Draw(rt, "scope"),
		Lasts: rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(rt, "lasts"),
	}
	shown := approval.Digests(r.Files)
	if rapid.Bool().Draw(rt, "bound") {
		v.Digests = map[string][]string{id: shown}
	}
	if r.State != approval.Pending {
		if _, err := w.in.Answer(context.Background(), "bob", v); err == nil {
			rt.Fatalf("%s was %s and took an answer", id, r.State)
		}
		return
	}
	// Noted before: an answer whose error came after its record counts.
	w.shown[id], w.scope[id], w.runs[id] = shown, v.Scope, slices.Concat(w.asked[id], w.tried[r.Package.Version+" "+r.Upstream])
	delete(w.ends, id)
	if v.Lasts > 0 {
		w.ends[id] = time.Now().Add(v.Lasts)
	}
	_, _ = w.in.Answer(context.Background(), "bob", v)
}

func (w *world) revoke(rt *rapid.T) {
	id := w.some(rt)
	if _, err := w.in.Revoke(context.Background(), "bob", id, ""); err == nil {
		w.revoked[id] = true
	}
}

// crash loses the memory; with what the store lacks.
func (w *world) crash(*rapid.T) {
	w.in.Close()
	w.in.log.FailWhen(nil)
	w.in.store.Break(nil)
	w.in.open(w.base)
}

func (w *world) sleep(rt *rapid.T) {
	time.Sleep(rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Minute, 4 * 24 * time.Hour}).Draw(rt, "time"))
}

func (w *world) failLog(rt *rapid.T) {
	left := rapid.IntRange(-1, 2).Draw(rt, "records")
	if left < 0 {
		w.in.log.FailWhen(nil)
		return
	}
	w.in.log.FailWhen(func(audit.Record) error {
		if left--; left < 0 {
			return errors.New("full")
		}
		return nil
	})
}

func (w *world) failStore(rt *rapid.T) {
	if rapid.Bool().Draw(rt, "broken") {
		w.in.store.Break(errors.New("full"))
	} else {
		w.in.store.Break(nil)
	}
}

func (w *world) check(rt *rapid.T) {
	for _, run := range []string{"r1", "r2", "r3"} {
		grants, _, err := w.in.Grants(context.Background(), pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich"}, asks(run, "sha256:policy-of-"+run))
		if err != nil {
			continue // nothing is admitted
		}
		for _, g := range grants {
			problem := ""
			for _, d := range g.Digests {
				if !slices.Contains(w.shown[g.ID], d) {
					problem = fmt.Sprintf("%s was not shown", d)
				}
			}
			ends, limited := w.ends[g.ID]
			switch {
			case w.revoked[g.ID]:
				problem = "it was revoked"
			case limited && !time.Now().Before(ends):
				problem = "its time is over"
			case w.scope[g.ID] == approval.ScopeRun && !slices.Contains(w.runs[g.ID], run):
				problem = "the run had not asked"
			case w.scope[g.ID] == approval.ScopePolicy && !slices.Contains(w.runs[g.ID], run): // here each run has a policy of its own
				problem = "no run under this policy had asked"
			}
			if problem != "" {
				rt.Fatalf("%s holds for %s: %s", g.ID, run, problem)
			}
		}
	}
}
