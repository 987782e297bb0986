package exchange

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnAnswerThatStopsWithinASecret is handed on up to there where its host did not get the secret. Where it did,
// it ends, and that is an alarm. So somebody who guesses there has to give an alarm for each letter, and after
// some of these the run gets no secret any more. The controls: what is no beginning arrives, on time and untold.
func TestAnAnswerThatStopsWithinASecret(t *testing.T) {
	stops := func(text string) []saying { return []saying{{0, ""}, {0, "." + text}, {time.Hour, "!"}} }
	text := forms()["text"]
	synctest.Test(t, func(t *testing.T) {
		if got, all, err := watch(t, toOther(guessed), text, stops(guessed[:9]), io.EOF); !errors.Is(err, io.EOF) || got != "."+guessed[:9]+"!" || all[0] != (seen{usualPatience, 10}) {
			t.Errorf("at another host: %q, %v, %v", got, all, err)
		}
	})
	l := &lender{value: guessed, others: map[string][]string{"two": {"sk-Zz-of-another-host"}}}
	x := toItsHost(l)
	miss := func(t *testing.T) {
		t.Helper()
		if got, all, err := watch(t, x, text, stops("sk-Zz"), io.EOF); !errors.Is(err, io.EOF) || got != ".sk-Zz!" || all[0] != (seen{secretPatience, 6}) {
			t.Errorf("what is no beginning: %q, %v, %v", got, all, err)
		}
	}
	for hits, end := range []struct {
		f     form
		steps []saying
	}{
		{text, stops(guessed[:4])},
		{forms()["a message"], []saying{{0, forms()["a message"].part("." + guessed[:9])}, {time.Hour, ""}}},
		{form{kind: "text/plain", open: true}, []saying{{0, "."}, {0, guessed[:len(guessed)-1]}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			miss(t)
			got, _, err := watch(t, x, end.f, end.steps, io.EOF)
			if refused, is := errors.AsType[*Refused](err); !is || !refused.Leak || refused.Sentence != "it is told" || strings.Contains(got, guessed[:4]) {
				t.Errorf("%d: %q, %v", hits, got, err)
			}
			if want := (Leak{Secret: "one", Where: "answer", Answer: true}); len(l.told) != hits+1 || l.told[hits] != want {
				t.Errorf("%d: %v is told", hits, l.told)
			}
		})
	}
	if err := x.Outgoing(post(t, "/", "", "")); err == nil || err.Error() != tooManyStops {
		t.Errorf("after that a request is sent: %v", err)
	}
	if _, err := ask(t, toItsHost(&lender{value: guessed}), text, http.NoBody); err != nil {
		t.Errorf("the control, another run: %v", err)
	}
}

// TestAnAnswerThatBreaksOffTellsNothing: of one to a request that got a secret, what is held is not handed on, be it
// the beginning of the secret or not. The controls: it is at a whole end, and at a host that got none.
func TestAnAnswerThatBreaksOffTellsNothing(t *testing.T) {
	for name, f := range map[string]form{"text": forms()["text"], "open": {kind: "text/plain", open: true}, "a message": forms()["a message"]} {
		for _, guess := range []string{"sk-Zz", guessed[:5]} {
			synctest.Test(t, func(t *testing.T) {
				part := func(text string) string {
					if f.upgraded {
						return forms()["a message"].part(text)
					}
					return text
				}
				l := &lender{value: guessed}
				steps := []saying{{0, part("a, ")}, {0, part(guess)}}
				got, _, err := watch(t, toItsHost(l), f, steps, io.ErrUnexpectedEOF)
				if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(got, guess) || !strings.Contains(got, "a, ") || len(l.told) > 0 {
					t.Errorf("%s, %s: %q, %v, %v is told", name, guess, got, err, l.told)
				}
				if got, _, _ := watch(t, toOther(guessed), f, steps, io.ErrUnexpectedEOF); !strings.HasSuffix(got, guess) {
					t.Errorf("%s, %s, the control, at another host: %q", name, guess, got)
				}
				if got, _, _ := watch(t, toItsHost(l), f, steps, io.EOF); strings.HasSuffix(got, guess) != (name == "text" || name == "open" && guess == "sk-Zz") {
					t.Errorf("%s, %s, the control, at its end: %q", name, guess, got)
				}
			})
		}
	}
}

// TestAfterTooManyStopsNobodyLearnsAnyMore: answers that were under way already end where they stop, whether that
// is within the secret or not.
func TestAfterTooManyStopsNobodyLearnsAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lender{value: guessed}
		x := toItsHost(l)
		var all sync.WaitGroup
		var mu sync.Mutex
		ends := map[string]int{}
		for i := range 10 {
			guess := []string{"sk-Zz", guessed[:5]}[i/maxStops%2] // the latter three times among the first ones
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				_, _, err := watch(t, x, forms()["text"], []saying{{0, guess}, {time.Hour, "!"}}, io.EOF)
				mu.Lock()
				defer mu.Unlock()
				ends[guess+": "+err.Error()]++
			})
		}
		all.Wait()
		want := map[string]int{"sk-Zz: EOF": 3, guessed[:5] + ": it is told": 3, "sk-Zz: " + tooManyStops: 3, guessed[:5] + ": " + tooManyStops: 1}
		if fmt.Sprint(ends) != fmt.Sprint(want) || len(l.told) != maxStops {
			t.Errorf("%v, and %d are told", ends, len(l.told))
		}
	})
}

// TestAnAnswerThatComesAfterTooManyStops to a request that was sent before is refused. The control: of a request that
// got no secret it comes.
func TestAnAnswerThatComesAfterTooManyStops(t *testing.T) {
	for _, gets := range []bool{true, false} {
		x := toItsHost(&lender{value: guessed})
		if !gets {
			x.credentials = nil
		}
		r := post(t, "/", "", "")
		if err := x.Outgoing(r); err != nil {
			t.Fatal(err)
		}
		for range maxStops {
			x.runs.countStopped(x.run, true)
		}
		err := x.Incoming(&http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r})
		if refused := err != nil && err.Error() == tooManyStops; refused != gets {
			t.Errorf("gets the secret %t: %v", gets, err)
		}
	}
}

// TestEachByteHasThePatience: what has come before a secret's beginning is handed on by its own time, and the
// beginning waits on.
func TestEachByteHasThePatience(t *testing.T) {
	l := &lender{value: guessed}
	for patience, x := range map[time.Duration]*Exchange{secretPatience: toItsHost(l), usualPatience: toOther(guessed)} {
		synctest.Test(t, func(t *testing.T) {
			pause := patience * 3 / 4
			text, all, err := watch(t, x, forms()["text"], []saying{{0, "older "}, {pause, guessed[:5]}, {pause, guessed[5:] + "]"}}, io.EOF)
			if text != "older "+strings.Repeat("x", len(guessed))+"]" || all[0] != (seen{patience, len("older ")}) || len(l.told) > 0 {
				t.Errorf("%v: %q, %v, %v, %v is told", patience, text, all, err, l.told)
			}
		})
	}
}

// TestOnlyTimeInWhichSomebodyWaitsCounts: a client reads up to within a secret, and no more for an
// hour. All that its host has said meanwhile is read before anything of that is handed on.
func TestOnlyTimeInWhichSomebodyWaitsCounts(t *testing.T) {
	for name, x := range map[string]*Exchange{"its host": toItsHost(&lender{value: guessed}), "another": toOther(guessed)} {
		for _, reads := range []bool{false, true} { // is a read under way while nobody waits?
			synctest.Test(t, func(t *testing.T) {
				in, out := io.Pipe()
				a, err := ask(t, x, forms()["text"], in)
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					_, _ = io.WriteString(out, "],"+guessed[:5])
					if reads {
						time.Sleep(time.Minute)
					}
					_, _ = io.WriteString(out, guessed[5:]+"]")
					_ = out.Close()
				}()
				begun := make([]byte, 100)
				if n, err := a.Body.Read(begun); err != nil || string(begun[:n]) != "]," {
					t.Fatalf("%q, %v", begun[:n], err)
				}
				if body := a.Body.(*incoming); reads { // as if it had waited for less than the patience
					body.arrivals.readBody()
				}
				time.Sleep(time.Hour)
				if rest, err := io.ReadAll(a.Body); err != nil || string(rest) != strings.Repeat("x", len(guessed))+"]" {
					t.Errorf("%s: %q, %v", name, rest, err)
				}
			})
		}
	}
}

// TestAPlaceholderInAMessageIsToldWithoutTheSecret: of a request with a secret in its path the path is told that the
// client asked for.
func TestAPlaceholderInAMessageIsToldWithoutTheSecret(t *testing.T) {
	for _, c := range []Credential{swapping(Path), swapping(Header)} { // the latter gets none here
		k := &pathKeeper{}
		e := New([]Credential{c}, all(), k)
		r := post(t, "/v1", "", "")
		if c.swapsIn(Path) {
			r = post(t, "/bot"+fake+"/updates", "", "")
		}
		want := r.URL.Path
		if err := e.Outgoing(r); err != nil {
			t.Fatal(err)
		}
		in, out := io.Pipe()
		defer out.Close()
		a := &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: http.Header{}, Request: r, Body: both{in, io.Discard}}
		if err := e.Incoming(a); err != nil {
			t.Fatal(err)
		}
		message := append(binary.BigEndian.AppendUint32([]byte{0x81, 0x80 | byte(len(other))}, 0), other...)
		if _, err := a.Body.(io.Writer).Write(message); err == nil {
			t.Error("a placeholder leaves")
		}
		if len(k.paths) == 0 || k.paths[0] != want {
			t.Errorf("%q is told, not %q", k.paths, want)
		}
	}
}

// pathKeeper is a Keeper that knows of which paths it was told.
type pathKeeper struct {
	vault
	paths []string
}

func (k *pathKeeper) Leaked(_ context.Context, r Request, _ Leak) string {
	k.paths = append(k.paths, r.Path)
	return "a placeholder is left"
}
