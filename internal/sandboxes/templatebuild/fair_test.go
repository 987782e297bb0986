package templatebuild_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
)

// begins announces and starts a build of a token's that goes on until s.hold is closed, and tells its id.
func (s *shop) begins(token string) string {
	s.t.Helper()
	b, err := s.builder.Begin(sandbox.Owner{Token: token}, tpl, "app", []string{"app"})
	if err != nil {
		s.t.Fatal(err)
	}
	r := request(b.ID)
	r.Owner = sandbox.Owner{Token: token}
	if err := s.builder.Start(tpl, b.ID, r, "/home/user", templatebuild.Recipe{Steps: runs("wait " + b.ID)}); err != nil {
		s.t.Fatal(err)
	}
	return b.ID
}

// status is a build's of a token.
func (s *shop) status(token, id string) templatebuild.Status {
	s.t.Helper()
	b, _, err := s.builder.Look(token, tpl, id, 0, 1<<30)
	if err != nil {
		s.t.Fatal(err)
	}
	return b.Status
}

// TestABuildBesideOthers: two tokens with all builds that they may have leave a third its first one.
func TestABuildBesideOthers(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	type one struct{ token, id string }
	var all []one
	for range 4 {
		for _, token := range []string{"tok-mallory", "tok-mallet"} {
			all = append(all, one{token, s.begins(token)})
		}
	}
	building := 0
	for _, b := range all {
		if s.status(b.token, b.id) == templatebuild.Building {
			building++
		}
	}
	if building == 0 {
		t.Fatal("INCONCLUSIVE: none is built")
	}
	first := one{"tok-bob", s.begins("tok-bob")}
	all = append(all, first)
	if got := s.status(first.token, first.id); got != templatebuild.Building { // Start says at once whether it may begin
		t.Errorf("beside %d builds of two other tokens the first of a third is %q", building, got)
	}
	close(s.hold)
	for _, b := range all {
		for s.status(b.token, b.id) != templatebuild.Ready && s.status(b.token, b.id) != templatebuild.Failed {
			moment()
		}
	}
}
