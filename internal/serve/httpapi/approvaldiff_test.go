package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/releasediff"
)

// shelf has some files, and remembers what was looked at.
type shelf struct {
	kept   map[string]bool // by name
	looked ReleaseLook
}

func (s *shelf) Kept(k KeptRelease) bool { return s.kept[k.Name] && len(k.SHA256) == 64 }

func (s *shelf) Look(_ context.Context, ask ReleaseLook) (releasediff.Listing, *releasediff.Text, error) {
	s.looked = ask
	if ask.Path != "" {
		return releasediff.Listing{}, &releasediff.Text{Path: ask.Path, Was: 1, Is: 2, Diff: "-a\n+b\n"}, nil
	}
	return releasediff.Listing{Changes: []releasediff.Change{{Path: "setup.py", Was: -1, Is: 3, Runs: "when it is built"}}, Total: 1, Same: 4}, nil, nil
}

// TestApprovalDiff: a release is compared with the last one of its package that was approved and whose bytes are
// here, in the same kind of file; without one it says why; and what is not here is not fetched.
func TestApprovalDiff(t *testing.T) {
	t.Parallel()
	q, err := approval.Open(t.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: &approvaltest.Log{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	files := &shelf{kept: map[string]bool{}}
	s := New(Config{Approvals: q, Releases: files, Logger: slog.New(slog.DiscardHandler)})
	ask := func(version string) approval.Request {
		t.Helper()
		digest := func(kind string) []string {
			return []string{"sha512:aa", "sha256:" + strings.Repeat("0", 63) + version[:1], "sha1:" + kind}[:2]
		}
		r, err := q.Ask(t.Context(), approval.Ask{
			Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "foo", Version: version}, Upstream: "https://index.example/", Run: "r", Sandbox: "s", Policy: "p", Rule: "r",
			Files: []approval.File{{Name: "foo-" + version + ".tar.gz", Kind: "sdist", Digests: digest("a")}, {Name: "foo-" + version + ".whl", Kind: "wheel", Digests: digest("b")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	approve := func(r approval.Request) {
		t.Helper()
		if _, err := q.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{r.AnswerID}, State: approval.Approved}); err != nil {
			t.Fatal(err)
		}
	}
	get := func(path string) (int, api.ApprovalDiff) {
		t.Helper()
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), socketKey{}, caller{name: "ann"}), http.MethodGet, path, nil)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var d api.ApprovalDiff
		if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		return w.Code, d
	}
	old, last, now := ask("1.0"), ask("2.0"), ask("3.0")
	at := "/v1/approvals/" + now.ID + "/diff"
	if code, _ := get(at); code != http.StatusNotFound {
		t.Errorf("nothing is kept: %d", code)
	}
	files.kept["foo-3.0.whl"] = true
	if code, d := get(at); code != 200 || d.File != "foo-3.0.whl" || d.Against != "" || d.Note != "no other release of it was approved here" || d.Total != 1 {
		t.Errorf("%d %+v", code, d)
	}
	approve(old)
	approve(last)
	if _, d := get(at); d.Against != "" || !strings.HasPrefix(d.Note, "the cache does not have the files any more") {
		t.Errorf("%+v", d)
	}
	files.kept["foo-1.0.tar.gz"], files.kept["foo-1.0.whl"] = true, true
	if _, d := get(at); d.Against != "foo-1.0.whl" || d.AgainstVersion != "1.0" || d.AgainstRequest != old.ID || files.looked.Before == nil {
		t.Errorf("%+v", d)
	}
	files.kept["foo-2.0.tar.gz"] = true
	if _, d := get(at + "?path=setup.py"); d.Against != "foo-2.0.tar.gz" || d.Text == nil || d.Text.Diff == "" || files.looked.Path != "setup.py" {
		t.Errorf("%+v", d)
	}
	for _, path := range []string{at + "?file=nosuch", at + "?file=foo-3.0.tar.gz", "/v1/approvals/ap-nobody/diff"} {
		if code, _ := get(path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
}
