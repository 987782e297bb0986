// Package environ is a source of secrets: variables of the daemon's environment.
package environ

import (
	"context"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Variable is the name of one.
type Variable string

// Fetch implements secret.Source.
func (v Variable) Fetch(context.Context) (secret.Value, error) {
	text, set := os.LookupEnv(string(v))
	if !set {
		return secret.Value{}, fault.New(fault.ErrUnavailable, "the daemon has no variable %s in its environment", string(v))
	}
	return secret.Line(text)
}
