package httpapi

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestCausesAreTheOperators: who calls over the network reads the sentences, and what
// is wrong with their own input; the installation's user reads all.
func TestCausesAreTheOperators(t *testing.T) {
	disk := &fs.PathError{Op: "open", Path: "/var/lib/secret", Err: errors.New("input/output error")}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a path":           {fault.Wrap(fault.ErrUnavailable, disk, "the journal can't be written"), "the journal can't be written"},
		"deeper":           {fault.Wrap(fault.ErrUnavailable, fmt.Errorf("x: %w", fault.Wrap(fault.ErrConflict, disk, "it is there")), "it did not start"), "it did not start: it is there"},
		"an input":         {fault.Wrap(fault.ErrInvalid, errors.New(`unknown field "x"`), "the body is not valid"), `the body is not valid: unknown field "x"`},
		"an input's path":  {fault.Wrap(fault.ErrInvalid, disk, "the template can't be read"), "the template can't be read"},
		"a plain sentence": {fault.Invalid("count is 1 to 10"), "count is 1 to 10"},
	} {
		remote := problemOf(c.err, statusOf(c.err), &caller{token: &token.Token{}})
		if remote.Detail != c.want {
			t.Errorf("%s: %q", name, remote.Detail)
		}
		local := problemOf(c.err, statusOf(c.err), &caller{})
		if local.Detail != c.err.Error() || (errors.Is(c.err, error(disk)) && !strings.Contains(local.Detail, "secret")) {
			t.Errorf("%s, on the socket: %q", name, local.Detail)
		}
	}
}
