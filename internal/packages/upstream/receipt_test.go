package upstream_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// TestNothingLeavesUnrecorded: a question is on record for each sandbox that has it asked, once
// for all attempts, before it leaves; one that can't be recorded, or that is asked for nobody,
// does not leave.
func TestNothingLeavesUnrecorded(t *testing.T) {
	about := upstream.Subject{Package: pkgref.Ref{Ecosystem: "python", Name: "a"}}
	party := &fairqueue.Party{}
	party.Join(fairqueue.For(t.Context(), "sb-1"))
	party.Join(fairqueue.For(t.Context(), "sb-2"))
	full := errors.New("no more records")
	for name, c := range map[string]struct {
		party   *fairqueue.Party
		refuses map[string]error
		heard   int
		told    []string
		want    error
	}{
		"for one":                {nil, nil, 2, []string{"sb-1"}, nil},
		"for two":                {party, nil, 2, []string{"sb-1", "sb-2"}, nil},
		"one may not":            {nil, map[string]error{"sb-1": full}, 0, nil, full},
		"one of two may not":     {party, map[string]error{"sb-1": full}, 2, []string{"sb-2"}, nil},
		"neither of two may":     {party, map[string]error{"sb-1": full, "sb-2": full}, 0, nil, full},
		"for nobody":             {&fairqueue.Party{}, nil, 0, nil, fault.ErrInvalid},
		"for the gateway itself": {partyOf(t, upstream.Itself), nil, 2, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := registry(t)
			s.Script("index.example/simple/a/", liar.Status(503), liar.Body("text/x", []byte("page"))) // the second attempt is answered
			l := &ledger{refuses: c.refuses}
			client := client(t, s, func(_ *upstream.Config, o *upstream.Options) { o.Recorder = l })
			ctx := asking(t)
			if c.party != nil {
				ctx = fairqueue.With(t.Context(), c.party)
			}
			location := s.URL(index, "/simple/a/")
			_, err := client.Page(ctx, upstream.PageAsk{URL: location, Subject: about}, &upstream.Memory{})
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if n := s.Count("index.example/simple/a/"); n != c.heard {
				t.Errorf("the upstream heard it %d times, want %d", n, c.heard)
			}
			var told []string
			for _, q := range l.asked {
				told = append(told, q.Sandbox)
				if q.URL != location || q.Subject != about {
					t.Errorf("on record is %+v", q)
				}
			}
			if diff := cmp.Diff(c.told, told); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReceiptOfAnother: a receipt of one upstream's client is good for no other's.
func TestReceiptOfAnother(t *testing.T) {
	s, l := registry(t), &ledger{}
	s.Script("index.example/simple/a/", liar.Body("text/x", []byte("page")))
	one := client(t, s, nil)
	other := client(t, s, func(_ *upstream.Config, o *upstream.Options) { o.Recorder = l })
	receipt, err := one.Record(asking(t), upstream.Subject{}, s.URL(index, "/simple/a/"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Page(asking(t), upstream.PageAsk{URL: s.URL(index, "/simple/a/"), Receipt: receipt}, &upstream.Memory{}); err != nil || len(l.asked) != 1 {
		t.Errorf("%v, on record: %+v", err, l.asked)
	}
}

func partyOf(t *testing.T, guest string) *fairqueue.Party {
	t.Helper()
	p := &fairqueue.Party{}
	p.Join(fairqueue.For(t.Context(), guest))
	return p
}
