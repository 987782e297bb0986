package copies

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// TestCovered: what lies read-only over a name directly in a mount, or under another path of the host, could not
// be written, and nothing else counts as that.
func TestCovered(t *testing.T) {
	t.Parallel()
	mount := engine.Mount{Source: "/p", Destination: "/w"}
	cover := engine.Mount{Source: "/p/.venv", Destination: "/w/.venv", ReadOnly: true}
	for name, c := range map[string]struct {
		mounts []engine.Mount
		want   string
	}{
		"covered":                             {[]engine.Mount{mount, cover}, ".venv"},
		"two":                                 {[]engine.Mount{mount, cover, {Source: "/p/bin", Destination: "/w/bin", ReadOnly: true}}, ".venv/bin"},
		"not read-only":                       {[]engine.Mount{mount, {Source: "/p/.venv", Destination: "/w/.venv"}}, ""},
		"something else, of an older version": {[]engine.Mount{mount, {Source: "/q/.venv", Destination: "/w/.venv", ReadOnly: true}}, ""},
		"another directory":                   {[]engine.Mount{mount, {Source: "/q/.venv", Destination: "/w/.venv", Covers: "dir,1,2,3,0"}}, ".venv"},
		"another, to be laid anew":            {[]engine.Mount{mount, {Source: "/q", Destination: "/w/.venv", Covers: hostpath.AnyMark}}, ".venv"},
		"a part of itself":                    {[]engine.Mount{mount, {Source: "/p/.venv/lib", Destination: "/w/.venv", Covers: "dir,1,2,3,0"}}, ""},
		"in another place":                    {[]engine.Mount{mount, {Source: "/p/.venv", Destination: "/w/x", ReadOnly: true}}, ""},
		"deeper":                              {[]engine.Mount{mount, {Source: "/p/a/b", Destination: "/w/a/b", ReadOnly: true}}, ""},
		"in memory":                           {[]engine.Mount{mount, {Destination: "/w/.venv", ReadOnly: true}}, ""},
		"laid over later":                     {[]engine.Mount{mount, cover, {Source: "/p/.venv", Destination: "/w/.venv"}}, ""},
		"laid over below, later":              {[]engine.Mount{mount, cover, {Source: "/p/.venv/bin", Destination: "/w/.venv/bin"}}, ""},
		"hidden later":                        {[]engine.Mount{mount, cover, {Destination: "/w/.venv/x", ReadOnly: true}}, ".venv"},
	} {
		if got := (Blueprint{Spec: engine.Spec{Mounts: c.mounts}}).writable(); got[0].Covered != c.want {
			t.Errorf("%s: %q", name, got[0].Covered)
		}
	}
}
