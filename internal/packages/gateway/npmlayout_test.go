package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// bare is an address without its query.
func bare(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

// signed gives a path's reply to those who ask with its query.
func signed(path string, reply liar.Reply) liar.Reply {
	_, query, _ := strings.Cut(path, "?")
	return func(s *liar.Server, w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != query {
			http.Error(w, "the address is not signed", http.StatusForbidden)
			return
		}
		reply(s, w, r)
	}
}

// TestNodeTarballsAreWhereTheirRegistryHasThem: whatever path a registry gives a release's tarball, clients have it at one that names the
// release, and it is the tarball that says whose it is: another package's, or another release's, is refused there.
func TestNodeTarballsAreWhereTheirRegistryHasThem(t *testing.T) {
	right := npmtest.Pack(t, "@octo/x", "1.2.3", nil)
	for name, path := range map[string]string{
		"npm":          "/@octo/x/-/x-1.2.3.tgz",
		"scope twice":  "/@octo/x/-/@octo/x-1.2.3.tgz",
		"below a path": "/api/npm/own/@octo/x/-/x-1.2.3.tgz",
		"by a digest":  "/download/@octo/x/1.2.3/0123456789abcdef0123456789abcdef01234567",
		"by a number":  "/files/4711",
		"no version":   "/@octo/x/-/latest.tgz",
		"signed":       "/@octo/x/-/x-1.2.3.tgz?sig=abc",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for content, c := range map[string]struct {
				release npmtest.Release
				served  bool
			}{
				"its own":             {right, true},
				"another package's":   {npmtest.Pack(t, "@octo/y", "1.2.3", nil), false},
				"another release's":   {npmtest.Pack(t, "@octo/x", "1.2.4", nil), false},
				"a namesake's":        {npmtest.Pack(t, "x", "1.2.3", nil), false},
				"no package's at all": {npmtest.Release{Bytes: npmtest.Tarball(t, [2]string{"package/index.js", ""})}, false},
			} {
				b := newNodeBench(t, nil)
				listed := right
				listed.Bytes, listed.URL = c.release.Bytes, b.registry.URL(indexHost, path) // the digest is that of what is there
				b.registry.Script(bare(indexHost+path), signed(path, liar.Body("application/octet-stream", c.release.Bytes)))
				b.registry.Script(nodePage(indexHost, right.Name), liar.Body(npmtest.Type, npmtest.Packument(t, right.Name, nil, listed)))
				page := b.get("/@octo%2fx")
				shown := right.Path()
				if strings.HasPrefix(name, "npm") || name == "scope twice" || name == "below a path" {
					shown = path
				}
				if page.StatusCode != http.StatusOK || !strings.Contains(page.body, shown+`"`) || shown != path && strings.Contains(page.body, path) {
					t.Errorf("%s: %s, and the page is %s; want %s in it", content, status(page), page.body, shown)
				}
				if !c.served {
					before := len(b.door.Failures())
					if file := b.get(shown); file.StatusCode != http.StatusFailedDependency || len(b.door.Failures()) != before+1 || len(b.door.Served()) != 0 {
						t.Errorf("%s: %s, %d failures and %v are on record", content, status(file), len(b.door.Failures())-before, b.door.Served())
					}
					continue
				}
				if file := b.get(shown); file.StatusCode != http.StatusOK || file.body != string(right.Bytes) {
					t.Errorf("%s: %s", content, status(file))
				}
				// A lockfile that was made elsewhere has the registry's own path, which says what it is for if a version is in it; one with
				// a signature, which is for a while, is asked for at the page's path alone.
				direct, says := b.get(path), shown == path || strings.Contains(path, "/x/1.2.3/")
				if (direct.StatusCode == http.StatusOK) != says || says && direct.body != string(right.Bytes) {
					t.Errorf("the registry's own path: %s", status(direct))
				}
				if other := b.get("/download/@octo/x/1.2.3/other"); other.StatusCode == http.StatusOK {
					t.Errorf("a path that the page does not have: %s", status(other))
				}
			}
		})
	}
}
