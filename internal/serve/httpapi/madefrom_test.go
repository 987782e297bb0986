package httpapi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestFilesOfWhichAPolicyWasMade: a client that makes a policy of other files of the host is asked about these as about a policy
// that is one itself, and they decide: no run may rewrite them.
func TestFilesOfWhichAPolicyWasMade(t *testing.T) {
	t.Parallel()
	s := sandboxRoutes{&desk{cfg: Config{Seen: func(_ context.Context, _, source string, document []byte) error {
		if string(document) == "an agent's" {
			return fault.Invalid("nobody has seen what is in %s", source)
		}
		return nil
	}}}}
	file := func(source, text string) api.DecidingFile {
		return api.DecidingFile{Source: source, Document: []byte(text)}
	}
	for name, c := range map[string]struct {
		from []api.DecidingFile
		says string // "": taken
	}{
		"control: none":       {nil, ""},
		"control: a person's": {[]api.DecidingFile{file("/p/session.yaml", "a person's")}, ""},
		"an agent's":          {[]api.DecidingFile{file("/p/session.yaml", "an agent's")}, "nobody has seen"},
		"the second":          {[]api.DecidingFile{file("/p/a", ""), file("/p/b", "an agent's")}, "nobody has seen what is in /p/b"},
		"relative":            {[]api.DecidingFile{file("session.yaml", "")}, "absolute"},
		"many":                {slices.Repeat([]api.DecidingFile{file("/p/a", "")}, mostMadeFrom+1), "at most"},
	} {
		asked := api.Policy{Document: []byte("name: made\n"), MadeFrom: c.from}
		chosen, err := s.policyFor(t.Context(), asked, caller{})
		if c.says == "" && (err != nil || len(chosen.from) != len(c.from)) || c.says != "" && (!errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, %v", name, chosen.from, err)
		}
	}
	_, err := s.policyFor(t.Context(), api.Policy{MadeFrom: []api.DecidingFile{file("/p/a", "")}}, caller{token: &token.Token{}})
	if !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("a token's: %v", err)
	}
}
