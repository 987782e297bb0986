package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// renewing is a Keeper whose secret is renewed: each request gets the newest value, and hears
// of all others.
type renewing struct {
	mu     sync.Mutex // guards it
	values []string
}

func (*renewing) Declined(context.Context, []string) {}

func (*renewing) Leaked(context.Context, Request, Leak) string { return "" }

func (v *renewing) Secrets(_ context.Context, _ Request, uses []Use) (Given, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	given := Given{Others: map[string][]string{"one": v.values}}
	if len(uses) > 0 {
		given.Secrets = map[string]string{"one": v.values[len(v.values)-1]}
	}
	return given, nil
}

// lent is a Lent that counts values.
func (v *renewing) lent(_ context.Context, _ string, since uint64) (map[string][]string, uint64, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	upTo := min(since+1, uint64(len(v.values))) // one at a time
	return map[string][]string{"one": v.values[since:upTo]}, upTo, upTo < uint64(len(v.values)), nil
}

func (v *renewing) renew(value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.values = append(v.values, value)
}

// late is one way in which an answer that has begun says something more.
type late struct {
	begins string // what comes before, to its end
	answer func(from io.ReadCloser, answer *http.Response)
	write  func(text string, answer *http.Response) string // gives the stream's bytes
	read   func(t *testing.T, answer *http.Response) string
}

func lates() map[string]late {
	whole := func(t *testing.T, a *http.Response) string {
		t.Helper()
		b, err := io.ReadAll(a.Body)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	plain := func(from io.ReadCloser, a *http.Response) { a.Body = from }
	socket := func(from io.ReadCloser, a *http.Response) {
		a.StatusCode, a.Body = http.StatusSwitchingProtocols, both{from, io.Discard}
	}
	frame := func(kind byte, text string) string { return string([]byte{kind, byte(len(text))}) + text }
	const words, hi = "it begins. ", "\x81\x02hi"
	return map[string]late{
		"body":   {words, plain, func(text string, _ *http.Response) string { return text }, whole},
		"events": {"data: it begins\n\n", plain, func(text string, _ *http.Response) string { return "data: " + text + "\n\n" }, whole},
		"trailer": {words, plain, func(text string, a *http.Response) string {
			a.Trailer = http.Header{"X-End": {text}}
			return "the end"
		}, func(t *testing.T, a *http.Response) string {
			t.Helper()
			_ = whole(t, a)
			return a.Trailer.Get("X-End")
		}},
		"message":   {hi, socket, func(text string, _ *http.Response) string { return frame(0x81, text) }, whole},
		"fragments": {hi, socket, func(text string, _ *http.Response) string { return frame(0x01, text[:9]) + frame(0x80, text[9:]) }, whole},
		"a ping":    {hi, socket, func(text string, _ *http.Response) string { return frame(0x89, text) }, whole},
		"a ping within a message": {hi, socket, func(text string, _ *http.Response) string {
			return frame(0x01, text[:4]) + frame(0x89, text) + frame(0x80, text[4:])
		}, whole},
	}
}

// TestRenewedWhileAnAnswerComes: a value that the run has got since an answer began does not come
// in by it, whichever of the run's requests brought it, nor does one of before. The control: a
// text that is like them comes.
func TestRenewedWhileAnAnswerComes(t *testing.T) {
	for name, way := range lates() {
		for _, by := range []string{"the same connection", "another connection", "another run"} {
			for _, known := range []bool{true, false} { // false: there was nothing to look for when it began
				t.Run(fmt.Sprintf("%s, renewed by %s, known %t", name, by, known), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { renewWhileAnAnswerComes(t, name, way, by, known) })
				})
			}
		}
	}
}

func renewWhileAnAnswerComes(t *testing.T, name string, way late, by string, known bool) {
	t.Helper()
	const first, second, like = "first-secret-value-000001", "second-secret-value-00002", "second-public-value-00003"
	v, runs := &renewing{}, NewRuns()
	if by == "another run" { // whose requests are none of this one's
		runs.Asking(v.lent)
	}
	if known {
		v.renew(first)
	}
	connect := func() *Exchange { return New([]Credential{setting()}, all(), v).Seek().Of(runs, "run") }
	ask := func(e *Exchange, c ...Credential) *http.Request {
		e.credentials = c
		r := post(t, "/v1", "", "")
		if err := e.Outgoing(r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	one := connect()
	other := one
	if by == "another connection" {
		other = connect()
	}
	in, out := io.Pipe()
	a := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}}
	if known {
		a.Request = ask(one, setting())
	} else {
		a.Request = ask(one)
	}
	way.answer(in, a)
	if err := one.Incoming(a); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(out, way.begins) }()
	begun := make([]byte, len(way.begins)) // of a stream that has been read from
	if _, err := io.ReadFull(a.Body, begun); err != nil || string(begun) != way.begins {
		t.Fatalf("%q, %v", begun, err)
	}
	v.renew(second)
	if by != "another run" {
		if r := ask(other, setting()); r.Header.Get("Authorization") != "Bearer "+second {
			t.Fatalf("the host gets %v", r.Header)
		}
	}
	go func() {
		_, _ = io.WriteString(out, way.write("so "+second+" "+like+" "+first+".", a))
		_ = out.Close()
	}()
	got := way.read(t, a)
	if strings.Contains(got, second) || known && strings.Contains(got, first) {
		t.Errorf("%q", got)
	}
	if name != "fragments" && name != "a ping within a message" && !strings.Contains(got, "so "+strings.Repeat("x", len(second))+" "+like+" ") {
		t.Errorf("%q", got)
	}
}

// TestAnAnswerThatIsEncodedSinceNothingWasSought ends once there is something to look for: its
// control comes whole.
func TestAnAnswerThatIsEncodedSinceNothingWasSought(t *testing.T) {
	for _, renewed := range []bool{false, true} {
		v := &renewing{}
		e := New(nil, all(), v).Seek()
		r := post(t, "/v1", "", "")
		if err := e.Outgoing(r); err != nil {
			t.Fatal(err)
		}
		in, out := io.Pipe()
		a := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Encoding": {"gzip"}}, Body: in, Request: r}
		if err := e.Incoming(a); err != nil {
			t.Fatal(err)
		}
		if renewed {
			v.renew("first-secret-value-000001")
			if err := e.Outgoing(post(t, "/v1", "", "")); err != nil {
				t.Fatal(err)
			}
		}
		go func() { _, _ = io.WriteString(out, "compressed"); _ = out.Close() }()
		b, err := io.ReadAll(a.Body)
		if refused, is := errors.AsType[*Refused](err); renewed && (!is || len(b) > 0 || !strings.Contains(refused.Sentence, "encodes its answer")) || !renewed && (err != nil || string(b) != "compressed") {
			t.Errorf("renewed %t: %q, %v", renewed, b, err)
		}
	}
}

// TestWhatAnotherRequestBringsMeanwhile is looked for in the answer of one that was asked about
// before it, and got an older value.
func TestWhatAnotherRequestBringsMeanwhile(t *testing.T) {
	v := &renewing{values: []string{"first-secret-value-000001"}}
	slow := &slowly{Keeper: v, asked: make(chan struct{}), answer: make(chan struct{})}
	runs := NewRuns()
	one, other := New([]Credential{setting()}, all(), slow).Of(runs, "run"), New([]Credential{setting()}, all(), v).Of(runs, "run")
	done, r := make(chan error), post(t, "/v1", "", "")
	go func() { done <- one.Outgoing(r) }()
	<-slow.asked
	v.renew("second-secret-value-00002")
	ctx, cancel := context.WithCancel(t.Context())
	if err := other.Outgoing(post(t, "/v1", "", "").WithContext(ctx)); err != nil {
		t.Fatal(err)
	}
	before := underway(runs)
	cancel()
	for underway(runs) == before { // until it is under way no more
		runtime.Gosched()
	}
	close(slow.answer)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := r.Header.Get("Authorization"); got != "Bearer first-secret-value-000001" {
		t.Fatal(got)
	}
	if one.sought().findInText("second-secret-value-00002") == "" {
		t.Error("the other request's value is forgotten")
	}
}

// TestWhatIsLentCanNotBeFoundOut: of an answer nothing more comes, in its head and its body, over a WebSocket
// and before it. The control: it comes as long as that can be found out.
func TestWhatIsLentCanNotBeFoundOut(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusSwitchingProtocols} {
		for _, from := range []string{"never", "its head", "its body"} {
			var mu sync.Mutex
			broken := false
			fail := func() {
				mu.Lock()
				defer mu.Unlock()
				broken = true
			}
			runs := NewRuns().Asking(func(context.Context, string, uint64) (map[string][]string, uint64, bool, error) {
				mu.Lock()
				defer mu.Unlock()
				if broken {
					return nil, 0, false, errors.New("nobody answers")
				}
				return nil, 0, false, nil
			})
			e := New([]Credential{setting()}, all(), &renewing{values: []string{"first-secret-value-000001"}}).Seek().Of(runs, "run")
			r := post(t, "/v1", "", "")
			if err := e.Outgoing(r); err != nil {
				t.Fatal(err)
			}
			if from == "its head" {
				fail()
			}
			early := http.Header{"Link": {"</a>"}}
			if e.Informational(t.Context(), early); len(early) > 0 != (from != "its head") {
				t.Errorf("%d, unknown from %s: early: %v", status, from, early)
			}
			body := io.NopCloser(strings.NewReader("\x81\x02hi"))
			a := &http.Response{StatusCode: status, Header: http.Header{}, Request: r, Body: both{body, io.Discard}}
			err := e.Incoming(a)
			if refused, is := errors.AsType[*Refused](err); is != (from == "its head") || is && !strings.Contains(refused.Sentence, "lent meanwhile") {
				t.Errorf("%d, unknown from %s: head: %v", status, from, err)
			}
			if err != nil {
				continue
			}
			if from == "its body" {
				fail()
			}
			got, err := io.ReadAll(a.Body)
			if _, is := errors.AsType[*Refused](err); is != (from == "its body") || (len(got) > 0) == is {
				t.Errorf("%d, unknown from %s: body: %q, %v", status, from, got, err)
			}
		}
	}
}

// underway is how many requests of the run are.
func underway(r *Runs) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.all["run"]; v != nil {
		return v.underway
	}
	return 0
}

// slowly is a Keeper that answers late.
type slowly struct {
	Keeper
	asked, answer chan struct{}
}

func (s *slowly) Secrets(ctx context.Context, r Request, uses []Use) (Given, error) {
	given, err := s.Keeper.Secrets(ctx, r, uses)
	close(s.asked)
	<-s.answer
	return given, err
}
