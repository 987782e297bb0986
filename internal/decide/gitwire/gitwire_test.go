package gitwire_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
)

func TestRequests(t *testing.T) {
	for _, c := range []struct {
		method, path, query string
		want                gitwire.Request
	}{
		{"GET", "/acme/app.git/info/refs", "service=git-upload-pack", gitwire.Request{Operation: gitwire.Fetch, Repository: "acme/app"}},
		{"GET", "/acme/app/info/refs", "service=git-upload-pack", gitwire.Request{Operation: gitwire.Fetch, Repository: "acme/app"}},
		{"GET", "/acme/app/info/refs", "service=git-receive-pack", gitwire.Request{Operation: gitwire.Push, Repository: "acme/app"}},
		{"POST", "/acme/app.git/git-upload-pack", "", gitwire.Request{Operation: gitwire.Fetch, Repository: "acme/app", Carries: true}},
		{"POST", "/a/b/c/app.git/git-receive-pack", "", gitwire.Request{Operation: gitwire.Push, Repository: "a/b/c/app", Carries: true}},
		{"POST", "/~me/.dot.wiki.git/git-receive-pack", "", gitwire.Request{Operation: gitwire.Push, Repository: "~me/.dot.wiki", Carries: true}},
	} {
		if got, found, wrong := gitwire.Read(c.method, c.path, c.query); got != c.want || !found || wrong != "" {
			t.Errorf("%s %s?%s is %+v, %v, %q", c.method, c.path, c.query, got, found, wrong)
		}
	}
}

func TestWhatIsNoneOfGits(t *testing.T) {
	for _, path := range []string{"/", "/acme/app", "/acme/app.git", "/acme/refs", "/info/acme/refs", "/acme/app.git/info/lfs/objects/batch", "/acme/git-receive-packs"} {
		if got, found, wrong := gitwire.Read("POST", path, ""); found || wrong != "" {
			t.Errorf("%s is %+v, %q", path, got, wrong)
		}
	}
}

// TestOtherSpellings: what a server could take for a push is one of git's, whatever it is
// spelt like, and is not passed on.
func TestOtherSpellings(t *testing.T) {
	for _, path := range []string{
		"/acme/app/git%2dreceive-pack", "/acme/app/git%252dreceive-pack", "/acme/app/Git-Receive-Pack", "/acme/app/git-receive-pack/", "/acme/app//git-receive-pack",
		"/acme/app/./git-receive-pack", "/acme/app/git-receive-pack;x", "/acme/app%2fgit-receive-pack", "/acme/app\\git-receive-pack", "/acme/app/x/../git-receive-pack",
		"/acme/app/git-receive-pack/../git-receive-pack", "/acme/app/git-receive-pack%20", "/acme/app/git-receive-pack.", "/acme/app/git-receive-pack%3fx",
		"/acme/app/git-receive-pack/x", "/acme/app/git-upload-archive", "/git-receive-pack", "//git-receive-pack", "/acme/../git-receive-pack", "/acme//app/git-receive-pack",
		"/acme/app.GIT/git-receive-pack", "/acme/app.git.git/git-receive-pack", "/acme/app.git/x/git-receive-pack", "/acme/%61pp/git-receive-pack", "/acme/info/refs/git-receive-pack",
		"/acme/" + strings.Repeat("x", 501) + "/git-receive-pack", "/acme/app;v=1/git-receive-pack", "/acme/äpp/git-receive-pack", "acme/app/git-receive-packs/../git-receive-pack",
		"/acme/app/info/x/../refs", "/" + strings.Repeat("x/", 21) + "git-receive-pack",
	} {
		if got, found, wrong := gitwire.Read("POST", path, ""); !found || wrong == "" {
			t.Errorf("%q is %+v, %v, and nothing is wrong with it", path, got, found)
		}
	}
	for _, query := range []string{
		"", "service=git-receive-pack&", "service=git-upload-pack&service=git-receive-pack", "service=git%2dreceive-pack", "Service=git-upload-pack", "x=1&service=git-upload-pack", "service=git-upload-archive",
	} {
		if got, found, wrong := gitwire.Read("GET", "/acme/app/info/refs", query); !found || wrong == "" {
			t.Errorf("the query %q is %+v, %v, and nothing is wrong with it", query, got, found)
		}
	}
	for _, c := range [][3]string{
		{"HEAD", "/acme/app/info/refs", "service=git-upload-pack"},
		{"POST", "/acme/app/info/refs", "service=git-upload-pack"},
		{"PUT", "/acme/app/git-receive-pack", ""},
		{"GET", "/acme/app/git-receive-pack", ""},
		{"POST", "/acme/app/git-receive-pack", "a=b"},
	} {
		if got, found, wrong := gitwire.Read(c[0], c[1], c[2]); !found || wrong == "" {
			t.Errorf("%s is %+v, %v, and nothing is wrong with it", c, got, found)
		}
	}
}
