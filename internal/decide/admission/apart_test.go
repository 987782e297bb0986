package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
)

// TestApart: a page of a name that a run may not have is its sandbox's alone;
// where ages count from when a file was seen first it is the token's.
func TestApart(t *testing.T) {
	h := newHouse(t, Limits{})
	seen := h.run()
	seen.Sandbox, seen.Token = "sb2", "ci"
	seen.Policy = parse(t, "packages: { default: deny, min_release_age: 7d, age_source: first-seen }\nallowed_packages: { python: [ { name: requests } ] }\n")
	must(t, h.Register(seen))
	for _, c := range []struct{ sandbox, name, want string }{
		{"sb1", "requests", ""},
		{"sb1", "idna", "sandbox sb1"},
		{"sb1", "evil", "sandbox sb1"},
		{"sb2", "requests", "token ci"},
		{"sb2", "idna", "sandbox sb2"},
	} {
		a, err := h.Owner(t.Context(), door.OwnerAsk{Sandbox: c.sandbox, Package: python(c.name, "")})
		must(t, err)
		if a.Apart != c.want {
			t.Errorf("%s asks for %s: apart as %q, want %q", c.sandbox, c.name, a.Apart, c.want)
		}
	}
	_, err := h.Serve(t.Context(), serving("requests", "2.31.0"))
	must(t, err)
	must(t, h.Edges(t.Context(), "sb1", python("requests", "2.31.0"), []door.Requirement{{Name: "idna"}}))
	a, err := h.Owner(t.Context(), door.OwnerAsk{Sandbox: "sb1", Package: python("idna", "")})
	must(t, err)
	if a.Apart != "" {
		t.Errorf("what an allowed release requires is kept apart as %q", a.Apart)
	}
}
