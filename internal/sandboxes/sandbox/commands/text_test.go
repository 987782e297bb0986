package commands

import (
	"errors"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestCommandsAreText: a command with bytes that a message can't carry does not start as another one,
// whoever in the daemon asks for it.
func TestCommandsAreText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Command{
		"argument":        {Argv: []string{"x", "bad\xff"}},
		"variable's name": {Argv: []string{"x"}, Env: map[string]string{"bad\xff": "1"}},
		"variable":        {Argv: []string{"x"}, Env: map[string]string{"K": "bad\xff"}},
		"folder":          {Argv: []string{"x"}, Dir: "/bad\xff"},
		"user":            {Argv: []string{"x"}, User: "bad\xff"},
	} {
		if err := checkCommand(c); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkCommand(Command{Argv: []string{"x", "é\ufffd\n"}, Env: map[string]string{"K": "\ufffd"}, Dir: "/é"}); err != nil {
		t.Error(err)
	}
}
