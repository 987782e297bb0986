package secret_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// counted is a source that counts how often it is asked.
type counted struct {
	mu    sync.Mutex // guards all below
	asked int
	fails bool
}

func (c *counted) Fetch(context.Context) (secret.Value, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.fails {
		return secret.Value{}, fault.New(fault.ErrUnavailable, "the place is closed")
	}
	return secret.NewValue(fmt.Sprintf("the-secret-%d", c.asked))
}

func (c *counted) fail(fails bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails = fails
}

// at is a clock that the test moves.
type at struct{ time.Time }

func (a *at) now() time.Time { return a.Time }

func broker(source secret.Source, clock *at) *secret.Broker {
	return secret.NewBroker([]secret.Declared{{
		Name: "one", Hosts: []string{"api.example", "*.corp.example"}, Source: source, Keep: time.Minute,
	}}, clock.now)
}

// TestASecretIsARuns: it is fetched at its first use, kept for a time, and dropped at the
// run's end.
func TestASecretIsARuns(t *testing.T) {
	clock, source := &at{time.Unix(1e9, 0)}, &counted{}
	b := broker(source, clock)
	first, second := b.Lease(), b.Lease()
	value := func(l *secret.Lease, want string) {
		t.Helper()
		if v, err := l.Value(t.Context(), "one", "api.example"); err != nil || v.Reveal() != want {
			t.Errorf("%q, %v; not %s", v.Reveal(), err, want)
		}
	}
	if first.Any() || source.asked != 0 {
		t.Error("it was fetched before its use")
	}
	value(first, "the-secret-1")
	value(first, "the-secret-1")
	value(second, "the-secret-2") // not another's
	clock.Time = clock.Add(time.Minute)
	value(first, "the-secret-3") // it may have been renewed
	first.End()
	if v, err := first.Value(t.Context(), "one", "api.example"); err == nil || v.Reveal() != "" || !strings.Contains(fault.Sentence(err, ""), "the run has ended") {
		t.Errorf("a run that has ended has %q, %v", v.Reveal(), err)
	}
	value(second, "the-secret-5")
}

// texts are what a lease has had of a secret.
func texts(t *testing.T, l *secret.Lease, wants ...secret.Want) []string {
	t.Helper()
	had, err := l.Had(t.Context(), wants)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, v := range had["one"] {
		all = append(all, v.Reveal())
	}
	return all
}

// TestAllThatARunHasHad is known to its end, also what was renewed; and what it may have is
// fetched before it has used it, unless its host may not have it.
func TestAllThatARunHasHad(t *testing.T) {
	clock, source := &at{time.Unix(1e9, 0)}, &counted{}
	l := broker(source, clock).Lease()
	if got := texts(t, l, secret.Want{Name: "one", Host: "evil.example"}, secret.Want{Name: "none", Host: "api.example"}); len(got) > 0 || source.asked > 0 {
		t.Errorf("%q, asked %d times", got, source.asked)
	}
	if got := texts(t, l, secret.Want{Name: "one", Host: "api.example"}); !slices.Equal(got, []string{"the-secret-1"}) || !l.Any() {
		t.Errorf("%q", got)
	}
	want := []string{"the-secret-1"}
	for i := 2; i <= 64; i++ {
		clock.Time = clock.Add(time.Minute)
		if _, err := l.Value(t.Context(), "one", "api.example"); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("the-secret-%d", i))
	}
	if got := texts(t, l); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	clock.Time = clock.Add(time.Minute)
	if _, err := l.Value(t.Context(), "one", "api.example"); err == nil || !strings.Contains(fault.Sentence(err, ""), "this run has had 64 values of it") {
		t.Errorf("one more than are kept: %v", err)
	}
	source.fail(true)
	clock.Time = clock.Add(time.Minute)
	if had, err := l.Had(t.Context(), []secret.Want{{Name: "one", Host: "api.example"}}); err == nil || had != nil {
		t.Errorf("of a source that fails there is %v", had)
	}
	if l.End(); l.Any() {
		t.Error("what has ended has secrets")
	}
}

// TestAStandingLeaseForgetsTheOldest: a daemon whose source gives another value each time goes on, and
// knows those that came last.
func TestAStandingLeaseForgetsTheOldest(t *testing.T) {
	clock, source := &at{time.Unix(1e9, 0)}, &counted{}
	l := broker(source, clock).StandingLease()
	var want []string
	for i := 1; i <= 300; i++ {
		if _, err := l.Value(t.Context(), "one", "api.example"); err != nil {
			t.Fatalf("value %d: %v", i, err)
		}
		want = append(want, fmt.Sprintf("the-secret-%d", i))
		clock.Time = clock.Add(time.Minute)
	}
	if got := texts(t, l); !slices.Equal(got, want[300-256:]) {
		t.Errorf("%d values, from %q to %q", len(got), got[0], got[len(got)-1])
	}
}

// TestASourceThatFails is not asked by each request, and no old value stands in for it.
func TestASourceThatFails(t *testing.T) {
	clock, source := &at{time.Unix(1e9, 0)}, &counted{}
	l := broker(source, clock).Lease()
	if _, err := l.Value(t.Context(), "one", "api.example"); err != nil {
		t.Fatal(err)
	}
	clock.Time = clock.Add(time.Minute)
	source.fail(true)
	for range 3 {
		v, err := l.Value(t.Context(), "one", "api.example")
		if v.Reveal() != "" || !errors.Is(err, fault.ErrUnavailable) || fault.Sentence(err, "") != `the secret "one" can't be had: the place is closed` {
			t.Errorf("%q, %v", v.Reveal(), err)
		}
	}
	if source.asked != 2 {
		t.Errorf("it was asked %d times", source.asked)
	}
	source.fail(false)
	clock.Time = clock.Add(10 * time.Second)
	if v, err := l.Value(t.Context(), "one", "api.example"); err != nil || v.Reveal() != "the-secret-3" {
		t.Errorf("%q, %v", v.Reveal(), err)
	}
}

// TestWhatAHostDeclinesIsFetchedAnew at the next use, at most once a minute; another run's
// stays as it is.
func TestWhatAHostDeclinesIsFetchedAnew(t *testing.T) {
	clock, source := &at{time.Unix(1e9, 0)}, &counted{}
	b := secret.NewBroker([]secret.Declared{{Name: "one", Hosts: []string{"api.example"}, Source: source, Keep: time.Hour}}, clock.now)
	first, second := b.Lease(), b.Lease()
	value := func(l *secret.Lease, want string) {
		t.Helper()
		if v, err := l.Value(t.Context(), "one", "api.example"); err != nil || v.Reveal() != want {
			t.Errorf("%q, %v; not %s", v.Reveal(), err, want)
		}
	}
	first.Declined("one") // it has none
	value(first, "the-secret-1")
	value(second, "the-secret-2")
	first.Declined("one")
	if source.asked != 2 {
		t.Errorf("it is fetched without a use: %d", source.asked)
	}
	value(first, "the-secret-3")
	value(second, "the-secret-2")
	for range 3 {
		first.Declined("one")
		value(first, "the-secret-3")
	}
	clock.Time = clock.Add(time.Minute)
	first.Declined("one")
	value(first, "the-secret-4")
	source.fail(true)
	second.Declined("one")
	for range 3 { // nor is one that is not to be had
		if _, err := second.Value(t.Context(), "one", "api.example"); !errors.Is(err, fault.ErrUnavailable) {
			t.Error(err)
		}
		second.Declined("one")
	}
	if source.asked != 5 {
		t.Errorf("it was asked %d times", source.asked)
	}
	third := b.Lease() // which no host has declined before
	for range 3 {
		if _, err := third.Value(t.Context(), "one", "api.example"); !errors.Is(err, fault.ErrUnavailable) {
			t.Error(err)
		}
		third.Declined("one")
	}
	if source.asked != 6 {
		t.Errorf("one that fails was asked %d times", source.asked)
	}
}

// TestOnlyDeclaredHostsGetASecret, whatever a policy says. api.example is the control.
func TestOnlyDeclaredHostsGetASecret(t *testing.T) {
	source := &counted{}
	b := broker(source, &at{time.Unix(1e9, 0)})
	for host, ok := range map[string]bool{
		"api.example": true, "a.corp.example": true, "a.b.corp.example": true,
		"corp.example": false, "evil.example": false, "api.example.evil.example": false, "sub.api.example": false, "evilcorp.example": false, "xcorp.example": false,
	} {
		before := source.asked
		v, err := b.Lease().Value(t.Context(), "one", host)
		if (err == nil) != ok || !ok && (!errors.Is(err, fault.ErrForbidden) || v.Reveal() != "" || source.asked != before) {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, none := range []*secret.Broker{b, nil} {
		if _, err := none.Find("two", ""); !errors.Is(err, fault.ErrNotFound) {
			t.Error(err)
		}
	}
	if d, err := b.Find("one", ""); err != nil || d.Name != "one" {
		t.Error(err)
	}
}

func TestManyAtOnceFetchOnce(t *testing.T) {
	source := &counted{}
	l := broker(source, &at{time.Unix(1e9, 0)}).Lease()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if v, err := l.Value(t.Context(), "one", "api.example"); err != nil || v.Reveal() != "the-secret-1" {
				t.Errorf("%q, %v", v.Reveal(), err)
			}
		})
	}
	all.Wait()
}

// stuck is a source that answers when its caller has given up.
type stuck struct{ ended chan struct{} }

func (s stuck) Fetch(ctx context.Context) (secret.Value, error) {
	<-ctx.Done()
	close(s.ended)
	return secret.Value{}, fault.New(fault.ErrUnavailable, "it did not end in time")
}

// TestASourceThatHangs holds up no request longer than that one waits, and ends with the run.
func TestASourceThatHangs(t *testing.T) {
	source := stuck{make(chan struct{})}
	l := broker(source, &at{time.Unix(1e9, 0)}).Lease()
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Value(ctx, "one", "api.example"); !strings.Contains(fault.Sentence(err, ""), "did not come in time") {
			t.Error(err)
		}
	}
	l.End()
	<-source.ended
}

// TestAValueIsNeverShown, however it is printed. Reveal is the control.
func TestAValueIsNeverShown(t *testing.T) {
	v, err := secret.NewValue("canary-secret")
	if err != nil || v.Reveal() != "canary-secret" {
		t.Fatal(err)
	}
	holder := struct {
		V secret.Value
		P *secret.Value
	}{v, &v}
	text, err := json.Marshal(holder)
	if err != nil {
		t.Error(err)
	}
	var logged bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&logged, nil))
	log.Info("it", "v", v, "holder", holder)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("it", "v", v, "holder", holder)
	said := fmt.Sprintf("%v %+v %#v %s %q %x %v %+v %#v", v, v, v, v, v, v, holder, holder, holder) + string(text) + logged.String()
	if strings.Contains(said, "canary") || strings.Contains(said, "63616e617279") {
		t.Error(said)
	}
}
