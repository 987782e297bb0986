package fault

import (
	"context"
	"errors"
)

// Kind is what a category is called wherever an error leaves the code: one row of the
// one table.
type Kind struct {
	Category error  // nil: the error is ours
	Name     string // in metrics, and between processes of this installation
	Status   int    // of HTTP
	Code     string // of the Connect protocol
	Exit     int    // of a command that ends with it; what only a command knows has a code of its own
}

// Kinds is the table, without the row of errors that are ours.
func Kinds() []Kind {
	return []Kind{
		{ErrInvalid, "invalid", 400, "invalid_argument", 2},
		{ErrNotFound, "not_found", 404, "not_found", 2},
		{ErrConflict, "conflict", 409, "failed_precondition", 1},
		{ErrForbidden, "forbidden", 403, "permission_denied", 1},
		{ErrExhausted, "exhausted", 429, "resource_exhausted", 1},
		{ErrUnavailable, "unavailable", 503, "unavailable", 1},
	}
}

// KindOf is an error's row. It goes by what the error itself is, not by what caused it.
// A step that took too long is unavailable.
func KindOf(err error) Kind {
	if f, ok := errors.AsType[*Fault](err); ok {
		err = f.Category
	}
	for _, k := range Kinds() {
		if errors.Is(err, k.Category) {
			return k
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return KindOf(ErrUnavailable)
	}
	return Kind{Name: "internal", Status: 500, Code: "internal", Exit: 1}
}

// KindNamed is the row with a name; that of errors that are ours, if there is none.
func KindNamed(name string) Kind {
	for _, k := range Kinds() {
		if k.Name == name {
			return k
		}
	}
	return KindOf(nil)
}

// KindAnswered is the row of an answer's status; that of errors that are ours, if there is
// none.
func KindAnswered(status int) Kind {
	for _, k := range Kinds() {
		if k.Status == status {
			return k
		}
	}
	return KindOf(nil)
}

// Remake is an error of a kind as another process told of it: a sentence. An error that is
// ours has no category there either.
func (k Kind) Remake(sentence string) error {
	if k.Category == nil {
		return errors.New(sentence)
	}
	return New(k.Category, "%s", sentence)
}
