// Package secret fetches secrets for the runs whose policy names them. The operator
// declares each with its source and the hosts that may get it; a policy says where it is
// put. A value that is fetched is kept for one sandbox, for a short time, and is dropped at its
// end. A sandbox never has it: see the packages placeholder and exchange.
package secret

import (
	"context"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Bounds of a value, in bytes. A shorter value can't be told from other text.
const (
	MinValue = 8
	MaxValue = 16 << 10
)

// Value is a secret. It prints, logs and marshals as a word that says nothing of it.
type Value struct {
	text string
	life time.Duration // since it was fetched; 0: nobody knows of an end
	own  bool          // see Own
}

// NewValue checks what a source gave: one line of printable text. The error does not show it.
func NewValue(text string) (Value, error) {
	switch {
	case text == "":
		return Value{}, fault.New(fault.ErrUnavailable, "it is empty")
	case len(text) < MinValue:
		return Value{}, fault.New(fault.ErrUnavailable, "it has fewer than %d bytes", MinValue)
	case len(text) > MaxValue:
		return Value{}, fault.New(fault.ErrUnavailable, "it has more than %d bytes", MaxValue)
	case !utf8.ValidString(text):
		return Value{}, fault.New(fault.ErrUnavailable, "it is not text in UTF-8")
	}
	for _, r := range text {
		if r < ' ' || r == 0x7f {
			return Value{}, fault.New(fault.ErrUnavailable, "it has a line's end or another control character in it; a secret is one line")
		}
	}
	return Value{text: text}, nil
}

// Reveal is the secret itself.
func (v Value) Reveal() string { return v.text }

// Own tells whether it is no secret for requests, but one that a source showed somebody to get such a
// one: a client's secret, a vault's token. It is only looked for.
func (v Value) Own() bool { return v.own }

// lateness is how long a request may be on its way with a secret, at most.
const lateness = 30 * time.Second

// For is the secret with an end of its own, so long after now. It is not used up to that
// end: requests are on their way for a while.
func (v Value) For(life time.Duration) (Value, error) {
	if v.life = life - min(lateness, life/10); v.life < time.Second {
		return Value{}, fault.New(fault.ErrUnavailable, "it has expired already")
	}
	return v, nil
}

// keptFor is how long it is used, if most is the longest.
func (v Value) keptFor(most time.Duration) time.Duration {
	if v.life == 0 {
		return most
	}
	return min(v.life, most)
}

// hidden is what is shown of every secret.
const hidden = "[secret]"

// String implements fmt.Stringer.
func (Value) String() string { return hidden }

// GoString implements fmt.GoStringer.
func (Value) GoString() string { return hidden }

// MarshalText implements encoding.TextMarshaler.
func (Value) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue implements slog.LogValuer.
func (Value) LogValue() slog.Value { return slog.StringValue(hidden) }

// Source is a place that has one secret. Package sourcetest says what is asked of it.
type Source interface {
	// Fetch reads the secret anew. It returns soon after ctx ends. An error is one sentence that has nothing
	// of the secret, and that begins in the middle: it is written behind "the secret NAME can't be had: ". It
	// fetches by FetchToShow what it has to show somebody to get the secret.
	Fetch(ctx context.Context) (Value, error)
}

// Line is NewValue for what a source has as a line of text, with or without its end.
func Line(text string) (Value, error) {
	line, _ := strings.CutSuffix(text, "\n")
	if len(line) < len(text) {
		line = strings.TrimSuffix(line, "\r")
	}
	return NewValue(line)
}
