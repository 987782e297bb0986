package installer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestResolve: whoever resolves has the gateway look into just what the reader of the result has read, in the order of its commands; a
// look that fails is a note, and a resolver that fails is its own error.
func TestResolve(t *testing.T) {
	t.Parallel()
	own := Rewrite{Argv: []string{"resolve"}, Resolver: Resolver{
		Name: "x", Documents: []string{"lock"},
		Read: Only("lock", func(data []byte) (Result, error) {
			out := Result{}
			for name := range strings.FieldsSeq(string(data)) {
				out.Choices = append(out.Choices, Choice{Name: name})
			}
			return out, nil
		}),
		Look: func(choices []Choice) (commands [][]string) {
			for _, c := range choices {
				commands = append(commands, []string{"look", c.Name})
			}
			return commands
		},
	}}
	var ran []string
	failing := ""
	run := func(argv []string) ([]byte, error) {
		command := strings.Join(argv, " ")
		if ran = append(ran, command); command == failing {
			return nil, fault.Invalid("it failed")
		}
		return []byte("cofferdam-plan lock 3\nb a\n"), nil
	}
	_, result, err := own.Resolve(t.Context(), run)
	if err != nil || len(result.Notes) != 0 || !slices.Equal(ran, []string{"resolve", "look a", "look b"}) {
		t.Errorf("%v, notes %q, ran %q", err, result.Notes, ran)
	}
	failing, ran = "look a", nil
	if _, result, err := own.Resolve(t.Context(), run); err != nil || len(result.Choices) != 2 || len(result.Notes) != 1 || len(ran) != 2 {
		t.Errorf("a look that fails: %v, notes %q, ran %q", err, result.Notes, ran)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := own.Resolve(ctx, run); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("given up: %v", err)
	}
	failing = ""
	if docs, _, err := own.Resolve(ctx, run); !errors.Is(err, context.Canceled) || docs != nil {
		t.Errorf("given up behind a look that went well: %v, %v", docs, err)
	}
	failing, ran = "resolve", nil
	if _, _, err := own.Resolve(t.Context(), run); !errors.Is(err, fault.ErrInvalid) || len(ran) != 1 {
		t.Errorf("a resolver that fails: %v, ran %q", err, ran)
	}
}
