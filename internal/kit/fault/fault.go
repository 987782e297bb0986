// Package fault holds the few categories into which every error that crosses a
// package border falls. A category is a sentinel: domain packages wrap it with
// a sentence (fault.New), callers ask with errors.Is, and the HTTP layer maps
// it to a status once.
//
// A fault has a category and a human sentence. An error without a category is ours, and the person
// sees only that something inside failed.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// The categories.
var (
	// ErrInvalid: the input is wrong; the sentence says what, where and what to do.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound: the thing named does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the thing exists already or is in the wrong state.
	ErrConflict = errors.New("conflict")
	// ErrForbidden: policy or permission refuses it.
	ErrForbidden = errors.New("forbidden")
	// ErrUnavailable: something needed is missing or down; trying later may work.
	ErrUnavailable = errors.New("unavailable")
	// ErrExhausted: the caller has used up what it may have; see RetryAfter.
	ErrExhausted = errors.New("exhausted")
)

// Fault is an error with a category.
type Fault struct {
	Category error  // one of the sentinels above
	Sentence string // for a person: what, where, what to do
	Cause    error  // may be nil; for the operator's log
	// Retry is when the same may succeed; 0: it is not known.
	Retry time.Duration
}

// Error returns the sentence, then the cause.
func (f *Fault) Error() string {
	if f.Cause == nil {
		return f.Sentence
	}
	return f.Sentence + ": " + f.Cause.Error()
}

// Unwrap gives both the category and the cause to errors.Is and errors.As.
func (f *Fault) Unwrap() []error {
	if f.Cause == nil {
		return []error{f.Category}
	}
	return []error{f.Category, f.Cause}
}

// New makes a fault of a category; format and args make its sentence.
func New(category error, format string, args ...any) error {
	return &Fault{Category: category, Sentence: fmt.Sprintf(format, args...)}
}

// Wrap makes a fault with a cause.
func Wrap(category, cause error, format string, args ...any) error {
	return &Fault{Category: category, Sentence: fmt.Sprintf(format, args...), Cause: cause}
}

// Exhausted makes a fault of category ErrExhausted. retry is when the same may
// succeed; 0 where only the caller can make room.
func Exhausted(retry time.Duration, format string, args ...any) error {
	return &Fault{Category: ErrExhausted, Sentence: fmt.Sprintf(format, args...), Retry: retry}
}

// RetryAfter is how long a caller should wait before it tries again; 0 if the
// error does not say.
func RetryAfter(err error) time.Duration {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.Retry
	}
	return 0
}

// Sentence is what a person may read of an error: a fault's sentence, and of any
// other error, which is ours, the one given here. It never has a cause's text.
func Sentence(err error, other string) string {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.Sentence
	}
	return other
}

// Invalid is New(ErrInvalid, ...), by far the commonest.
func Invalid(format string, args ...any) error { return New(ErrInvalid, format, args...) }
