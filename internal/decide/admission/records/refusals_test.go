package records_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func newBook(log audit.Log) *records.Book {
	return records.NewBook(records.Config{
		Log: log, Run: "run1", Sandbox: "sb1", Policy: func() string { return "sha256:p" },
		Limits: records.Limits{Records: 10_000, Names: 1_000, Refusals: 1_000},
	})
}

// ofOneTime are the fields of a record that say when and of which sandbox it is, not what
// happened.
var ofOneTime = []string{"Seq", "Time", "Clock", "Run", "Sandbox", "Policy", "Count", "RequestID", "User", "Token", "Erased"}

// TestOnlyTheSameIsJoined: whatever a reader is told of a refusal, another one of which he would
// be told otherwise has a record of its own. Fields that records come to have are
// asked about by themselves.
func TestOnlyTheSameIsJoined(t *testing.T) {
	t.Parallel()
	base := func() audit.Record {
		return audit.Record{Kind: audit.KindNetwork, Outcome: audit.Blocked, Rule: "r", Reason: "one", Detail: map[string]string{"name": "api.example"}}
	}
	others := map[string]audit.Record{}
	for i := range reflect.TypeFor[audit.Record]().NumField() {
		f := reflect.TypeFor[audit.Record]().Field(i)
		if slices.Contains(ofOneTime, f.Name) {
			continue
		}
		r := base()
		set(t, reflect.ValueOf(&r).Elem().Field(i))
		others[f.Name] = r
	}
	for _, key := range []string{"name", "port", "request", "secret", "where", "refs", "suggest", "wanted_by", "protocol", "at", "anything else"} {
		r := base()
		r.Detail[key] = "other"
		others["Detail "+key] = r
	}
	for name, other := range others {
		log := &approvaltest.Log{}
		b := newBook(log)
		for _, r := range []audit.Record{base(), other, base(), other} {
			if _, err := b.Refuse(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(log.All()); n != 2 {
			t.Errorf("%s: %d records of two different refusals: %+v", name, n, log.All())
		}
		if err := b.Summarise(t.Context()); err != nil || len(log.All()) != 4 {
			t.Errorf("%s: their repeats: %v %+v", name, err, log.All()) // that the same is joined
		}
	}
}

// set gives a field another value than it has.
func set(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case string, audit.Kind, audit.Outcome:
		v.SetString(v.String() + "x")
	case int64:
		v.SetInt(v.Int() + 1)
	case bool:
		v.SetBool(!v.Bool())
	case *int:
		n := 3
		v.Set(reflect.ValueOf(&n))
	case []string:
		v.Set(reflect.ValueOf([]string{"x"}))
	case []audit.WithheldRange:
		v.Set(reflect.ValueOf([]audit.WithheldRange{{Reason: "x"}}))
	case map[string]string:
		v.Set(reflect.ValueOf(map[string]string{"x": "y"}))
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
	default:
		t.Fatalf("a field of the type %s, of which this test has no other value", v.Type())
	}
}

// TestRepeatsOutliveAFailedWrite: those that can't be written once are written the next time,
// each once, whichever of them failed.
func TestRepeatsOutliveAFailedWrite(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	b := newBook(log)
	const kinds, times = 5, 10
	for i := range kinds {
		for range times {
			if _, err := b.Refuse(t.Context(), audit.Record{Kind: audit.KindNetwork, Outcome: audit.Blocked, Reason: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
			if err := b.Ask(t.Context(), audit.Record{Kind: audit.KindPackage, Outcome: audit.Asked, SourceURL: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	full := errors.New("the disk is full")
	log.FailWhen(func(r audit.Record) error {
		if r.Reason == "3" || r.SourceURL == "2" {
			return full
		}
		return nil
	})
	if err := b.Summarise(t.Context()); !errors.Is(err, full) {
		t.Fatalf("INCONCLUSIVE: %v", err)
	}
	log.FailWhen(nil)
	for range 2 {
		if err := b.Summarise(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	counted := map[string]int{}
	for _, r := range log.All() {
		counted[fmt.Sprint(r.Outcome, " ", r.Reason, r.SourceURL)] += max(1, r.Count)
	}
	if len(counted) != 2*kinds {
		t.Errorf("%v", counted)
	}
	for what, n := range counted {
		if n != times {
			t.Errorf("%s: %d of %d are on record", what, n, times)
		}
	}
}

// TestQuestionsPastTheirQuota: they are refused, which is on record once, and nothing else is; also
// when the log is read again.
func TestQuestionsPastTheirQuota(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	limited := func() *records.Book {
		return records.NewBook(records.Config{
			Log: log, Run: "run1", Sandbox: "sb1", Policy: func() string { return "p" }, Limits: records.Limits{Records: 4, Names: 5, Refusals: 5},
			OnExceeded: func(string) { t.Error("the run was cut") },
		})
	}
	ask := func(b *records.Book, i int) error {
		return b.Ask(t.Context(), audit.Record{Kind: audit.KindPackage, Outcome: audit.Asked, SourceURL: fmt.Sprint(i)})
	}
	b := limited()
	for i := range 12 {
		if err := ask(b, i); err != nil {
			t.Fatal(err)
		}
	}
	next := limited()
	for _, r := range log.All() {
		next.Replay(r)
		next.ReplayAsked(r)
	}
	for _, b := range []*records.Book{b, next} {
		for i := range 3 {
			if err := ask(b, 12+i); !errors.Is(err, fault.ErrForbidden) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if err := ask(b, 5); err != nil {
			t.Errorf("asked before: %v", err)
		}
		if err := b.Open(t.Context()); err != nil {
			t.Error(err)
		}
	}
	exceeded := 0
	for _, r := range log.All() {
		if r.Outcome == audit.Exceeded {
			exceeded++
		}
	}
	if exceeded != 2 { // of two books
		t.Errorf("%d records say so", exceeded)
	}
	if _, err := b.Refuse(t.Context(), audit.Record{Kind: audit.KindNetwork, Outcome: audit.Blocked, Reason: "another"}); err != nil {
		t.Error(err)
	}
}
