// Package sourcetest says by tests what every source of a secret does.
package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Harness is a source and the place behind it.
type Harness struct {
	Source secret.Source
	// Exact tells that the place holds no lines, so that a line's end is part of a text.
	Exact bool
	// Put has the place hold a text; Remove empties it.
	Put    func(t *testing.T, text string)
	Remove func(t *testing.T)
	// Stall has the place answer no more, until the test ends; nil: it can't be slow.
	Stall func(t *testing.T)
}

// Conforms runs the suite. begin makes a new source each time.
func Conforms(t *testing.T, begin func(t *testing.T) Harness) {
	t.Helper()
	t.Run("ItGivesWhatIsThereNow", func(t *testing.T) {
		h := begin(t)
		for _, text := range []string{"first-secret", "second secret/é+", strings.Repeat("x", secret.MaxValue)} {
			h.Put(t, text)
			v, err := h.Source.Fetch(t.Context())
			if err != nil || v.Reveal() != text {
				t.Errorf("%d bytes became %d, %v", len(text), len(v.Reveal()), err)
			}
		}
	})
	t.Run("ALinesEndIsNoPartOfIt", func(t *testing.T) {
		h := begin(t)
		if h.Exact {
			h.Put(t, "canary-secret\n")
			wantRefused(t, "a line's end", h.Source)
			return
		}
		for _, end := range []string{"\n", "\r\n"} {
			h.Put(t, "the-secret"+end)
			if v, err := h.Source.Fetch(t.Context()); err != nil || v.Reveal() != "the-secret" {
				t.Errorf("%q: %q, %v", end, v.Reveal(), err)
			}
		}
	})
	t.Run("WhatIsNoSecretIsRefusedWithoutATrace", func(t *testing.T) {
		h := begin(t)
		for name, text := range map[string]string{
			"two lines":     "canary-one\ncanary-two\n",
			"an empty line": "canary-one\n\n",
			"nothing":       "",
			"too short":     "canary-",
			"too long":      strings.Repeat("canary-", secret.MaxValue),
			"control":       "canary-\x1b[31m-canary",
			"endless":       strings.Repeat("canary-\n", 1<<17),
		} {
			h.Put(t, text)
			wantRefused(t, name, h.Source)
		}
	})
	t.Run("WhatIsNotThereIsRefused", func(t *testing.T) {
		h := begin(t)
		h.Put(t, "canary-secret")
		h.Remove(t)
		wantRefused(t, "removed", h.Source)
	})
	t.Run("ItEndsWithItsContext", func(t *testing.T) {
		h := begin(t)
		h.Put(t, "canary-secret")
		if h.Stall == nil {
			return
		}
		h.Stall(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := h.Source.Fetch(ctx) // the test ends with a stall that it does not notice
		checkError(t, "stalled", err)
	})
}

func wantRefused(t *testing.T, name string, s secret.Source) {
	t.Helper()
	v, err := s.Fetch(t.Context())
	if v != (secret.Value{}) {
		t.Errorf("%s: a value came with %v", name, err)
	}
	checkError(t, name, err)
}

// checkError looks at an error, with all that it wraps: it is unavailable, in one sentence, and
// has nothing of the secret.
func checkError(t *testing.T, name string, err error) {
	t.Helper()
	sentence := fault.Sentence(err, "")
	if !errors.Is(err, fault.ErrUnavailable) || sentence == "" || strings.Contains(sentence, "\n") {
		t.Errorf("%s: %v", name, err)
	}
	if said := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(said, "canary") {
		t.Errorf("%s: the secret is in %s", name, said)
	}
}
