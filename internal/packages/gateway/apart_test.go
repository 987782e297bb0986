package gateway_test

import (
	"net/http"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
)

// TestPagesApart: that a run which may not have a name asked for it is told to no
// other by how soon its page comes, nor is it told that another did; those who may
// have it share it, over a restart, too.
func TestPagesApart(t *testing.T) {
	b := newBench(t, nil)
	b.publish(pypitest.Wheel(t, "foo", "1.0"))
	b.door.apart = map[string]string{"sb-refused": "sandbox sb-refused", "sb-other": "sandbox sb-other"}
	reached := func() int { return b.registry.Count(indexHost + "/simple/foo/") }
	for i, c := range []struct {
		sandbox string
		asked   int // of the registry, all in all
	}{
		{"sb-refused", 1}, {"sb-refused", 1}, {"sb-other", 2}, {"sb-a", 3}, {"sb-b", 3}, {"sb-other", 3}, {"sb-refused", 3},
	} {
		if a := b.do(c.sandbox, http.MethodGet, "https://"+indexHost+"/simple/foo/"); a.StatusCode != http.StatusOK {
			t.Fatal(status(a))
		}
		if n := reached(); n != c.asked {
			t.Errorf("request %d, of %s: the registry was asked %d times, want %d", i, c.sandbox, n, c.asked)
		}
	}
	b.restart()
	for _, sandbox := range []string{"sb-a", "sb-b"} {
		b.do(sandbox, http.MethodGet, "https://"+indexHost+"/simple/foo/")
	}
	if n := reached(); n != 3 {
		t.Errorf("after a restart the registry was asked %d times", n)
	}
	b.door.apart["sb-new"] = "sandbox sb-new"
	b.do("sb-new", http.MethodGet, "https://"+indexHost+"/simple/foo/")
	if n := reached(); n != 4 {
		t.Errorf("for a new sandbox that may not have it the registry was asked %d times, want once more", n-3)
	}
}
