package gateway_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// deny refuses some versions, each with a reason of its own.
func (b *bench) deny(versions ...string) {
	b.door.rule(func(r pkgref.Ref, _ door.File) policy.Decision {
		for _, v := range versions {
			if r.Version == v {
				return policy.Decision{Effect: policy.Deny, Rule: "rule", Reason: "no " + v, Suggest: "allow: " + v}
			}
		}
		return policy.Decision{Effect: policy.Allow}
	})
}

// TestRepresentations: forms and encodings have their own ETags, and 304s; all
// encodings are one document.
func TestRepresentations(t *testing.T) {
	b, p := newBulk(t, nil)
	b.bulkPage("a", "1.0.0 - - one", "2.0.0 - - two")
	etags := map[string]bool{}
	for form, want := range map[string]string{"full": "1.0.0 - - one\n2.0.0 - - two\n", "short": "1.0.0\n2.0.0\n"} {
		for _, encoding := range []string{"identity", "gzip"} {
			got := b.bulkGet("a", "Accept", form, "Accept-Encoding", encoding)
			h := got.Header
			if got.StatusCode != 200 || h.Get("Vary") != "Accept, Accept-Encoding" || h.Get("Content-Type") != "text/"+form || h.Get("Content-Length") != strconv.Itoa(len(got.body)) {
				t.Errorf("%s %s: %v", form, encoding, h)
			}
			if (h.Get("Content-Encoding") == "gzip") != (encoding == "gzip") {
				t.Errorf("%s %s is encoded as %q", form, encoding, h.Get("Content-Encoding"))
			}
			if body := unpacked(t, got); body != want {
				t.Errorf("%s %s: %q", form, encoding, body)
			}
			etags[h.Get("ETag")] = true
			for tag, status := range map[string]int{h.Get("ETag"): 304, `"other", W/` + h.Get("ETag"): 304, `"other"`: 200} {
				again := b.bulkGet("a", "Accept", form, "Accept-Encoding", encoding, "If-None-Match", tag)
				if again.StatusCode != status || again.Header.Get("ETag") != h.Get("ETag") || status == 304 && again.body != "" {
					t.Errorf("%s %s with %s: %s", form, encoding, tag, again.Status)
				}
			}
			head := b.do(sandboxA, http.MethodHead, "https://"+bulkHost+"/a", "Accept", form, "Accept-Encoding", encoding)
			if head.StatusCode != 200 || head.body != "" || head.Header.Get("Content-Length") != h.Get("Content-Length") || head.Header.Get("ETag") != h.Get("ETag") {
				t.Errorf("HEAD: %v, GET: %v", head.Header, h)
			}
		}
	}
	if len(etags) != 4 || etags[""] {
		t.Errorf("ETags %v, want four", etags)
	}
	if n := p.drawn.Load(); n != 2 {
		t.Errorf("rendered %d times, want once per form", n)
	}
}

func unpacked(t *testing.T, a answer) string {
	t.Helper()
	if a.Header.Get("Content-Encoding") != "gzip" {
		return a.body
	}
	z, err := gzip.NewReader(strings.NewReader(a.body))
	must(t, err)
	body, err := io.ReadAll(z)
	must(t, err)
	return string(body)
}

// TestOneRendering: however many want a page, it is rendered once, for all runs
// with the same verdicts.
func TestOneRendering(t *testing.T) {
	b, p := newBulk(t, nil)
	b.bulkPage("a", "1.0.0 - - one")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			resp, err := b.client(string(rune('a' + i))).Get("https://" + bulkHost + "/a")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "1.0.0 - - one\n" {
				t.Errorf("%s %q, %v", resp.Status, body, err)
			}
		})
	}
	wg.Wait()
	if n := p.drawn.Load(); n != 1 || b.registry.Count(bulkHost+"/a") != 1 {
		t.Errorf("rendered %d times", n)
	}
	b.deny("9.9.9")
	b.bulkGet("a")
	if n := p.drawn.Load(); n != 2 {
		t.Errorf("under other verdicts rendered %d times, want once more", n)
	}
}

// TestReleases: a release or tag that the run may not have is refused with the
// decision on it, and one that there is not is missing.
func TestReleases(t *testing.T) {
	b, _ := newBulk(t, nil)
	b.bulkPage("a", "tag latest 2.0.0", "tag old 1.0.0", "tag broken 3.0.0", "1.0.0 - - one", "2.0.0 - - two")
	b.deny("2.0.0")
	for path, want := range map[string]string{
		"a/1.0.0": "1.0.0 - - one\n", "a/old": "1.0.0 - - one\n",
	} {
		if got := b.bulkGet(path); got.StatusCode != 200 || got.body != want {
			t.Errorf("%s: %s", path, status(got))
		}
	}
	for range 2 {
		for _, path := range []string{"a/2.0.0", "a/latest"} {
			got := b.bulkGet(path)
			if got.StatusCode != 403 || got.Status != "403 Blocked by cofferdam: node a 2.0.0: no 2.0.0; request r-index; see: cofferdam why" ||
				!strings.Contains(got.body, "allow: 2.0.0") || got.Header.Get("Cache-Control") != "no-store" || got.Header.Get("ETag") != "" {
				t.Errorf("%s: %s", path, status(got))
			}
		}
	}
	if n := len(b.door.Failures()); n != 0 {
		t.Errorf("%d failures recorded for what is a decision", n)
	}
	for _, path := range []string{"a/9.9.9", "a/broken", "a/next"} {
		if got := b.bulkGet(path); got.StatusCode != 404 {
			t.Errorf("%s: %s", path, status(got))
		}
	}
}

// TestNothingAllowed: a protocol may want a refusal in place of such a page.
func TestNothingAllowed(t *testing.T) {
	b, p := newBulk(t, nil)
	b.bulkPage("a", "1.9.0 - - x", "1.10.0 - - x", "1.11.0-rc.1 - - x")
	b.deny("1.9.0", "1.10.0", "1.11.0-rc.1")
	if got := b.bulkGet("a"); got.StatusCode != 200 || got.body != "" {
		t.Errorf("a protocol that shows it: %s", status(got))
	}
	p.refuses = true
	b.door.rule(b.door.decide)
	if got := b.bulkGet("a"); got.StatusCode != 403 || got.Status != "403 Blocked by cofferdam: node a: no 1.10.0; request r-index; see: cofferdam why" {
		t.Errorf("a protocol that refuses it: %s", status(got))
	}
	b.bulkPage("empty", "tag latest 1.0.0")
	if got := b.bulkGet("empty"); got.StatusCode != 404 || !strings.Contains(got.Status, "the project has no releases") {
		t.Errorf("a project without files: %s", status(got))
	}
}

// TestListedRequirements: the door hears what the allowed releases require
// before the page is sent, and the rows are read for it once.
func TestListedRequirements(t *testing.T) {
	b, p := newBulk(t, nil)
	b.bulkPage("a", "1.0.0 - - needs x@^1 y@2", "1.1.0 - - needs x@^1 z@git:evil", "2.0.0 - - needs x@^2 y@2", "3.0.0 - - none")
	b.bulkGet("a")
	if len(b.door.listed) != 0 {
		t.Errorf("unasked: %v", b.door.listed)
	}
	b.door.wants = true
	all := []door.IndexRequirement{
		{Name: "x", Specifier: "^1", Versions: []string{"1.0.0", "1.1.0"}}, {Name: "y", Specifier: "2", Versions: []string{"1.0.0", "2.0.0"}}, {Name: "x", Specifier: "^2", Versions: []string{"2.0.0"}},
	}
	some := []door.IndexRequirement{{Name: "x", Specifier: "^1", Versions: []string{"1.1.0"}}}
	for _, c := range []struct {
		denied []string
		want   []door.IndexRequirement
	}{{nil, all}, {[]string{"1.0.0", "2.0.0"}, some}, {[]string{"1.0.0", "1.1.0", "2.0.0"}, []door.IndexRequirement{}}} {
		b.deny(c.denied...)
		b.door.listed = nil
		if got := b.bulkGet("a"); got.StatusCode != 200 {
			t.Fatal(status(got))
		}
		want := []listing{{Project: pkgref.Ref{Ecosystem: pkgref.Node, Name: "a"}, Digest: b.door.LastAsk().IndexDigest, Reqs: c.want}}
		if diff := cmp.Diff(want, b.door.listed); diff != "" {
			t.Errorf("without %v (-want +got):\n%s", c.denied, diff)
		}
	}
	b.restart()
	b.deny("1.0.0", "2.0.0")
	b.door.listed = nil
	b.bulkGet("a")
	if len(b.door.listed) != 1 {
		t.Fatalf("after a restart: %v", b.door.listed)
	}
	if diff := cmp.Diff(some, b.door.listed[0].Reqs); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if n := p.listed.Load(); n != 4 {
		t.Errorf("%d rows read, want each of the four once", n)
	}
}

// TestNotices: a client is told when what it would have taken is withheld, and
// only then.
func TestNotices(t *testing.T) {
	b, _ := newBulk(t, nil)
	b.bulkPage("a", "tag latest 2.1.0", "1.0.0 - - x", "2.0.0 - - x", "2.1.0 - - x", "3.0.0-beta - - x")
	b.bulkPage("b", "tag latest 1.0.0", "1.0.0 - - x", "2.0.0 - - x", "2.1.0 - - x")
	for _, c := range []struct {
		project string
		denied  []string
		notice  string
	}{
		{"a", nil, ""},
		{"a", []string{"1.0.0"}, ""},
		{"a", []string{"2.0.0"}, ""},
		{"a", []string{"3.0.0-beta"}, ""},
		{"a", []string{"2.1.0"}, "2.1.0"},
		{"a", []string{"2.1.0", "3.0.0-beta"}, "2.1.0"},
		{"b", []string{"2.0.0"}, ""},
		{"b", []string{"2.0.0", "2.1.0"}, "2.1.0"},
		{"b", []string{"1.0.0"}, "1.0.0"},
		{"b", []string{"1.0.0", "2.0.0", "2.1.0"}, "2.1.0"},
	} {
		b.deny(c.denied...)
		for range 2 {
			got := b.bulkGet(c.project)
			want, control := "", "no-cache"
			if c.notice != "" {
				want, control = "node "+c.project+" "+c.notice+": no "+c.notice+"; request r-index; see: cofferdam why", "no-store"
			}
			if got.StatusCode != 200 || got.Header.Get("X-Notice") != want || got.Header.Get("Cache-Control") != control {
				t.Errorf("%s without %v: notice %q, %s; want %q", c.project, c.denied, got.Header.Get("X-Notice"), got.Header.Get("Cache-Control"), want)
			}
		}
	}
}

// TestNoNoticeOfALockfile: that all but its pins are withheld is what a lockfile
// is for; that a pin is withheld for something else is news.
func TestNoNoticeOfALockfile(t *testing.T) {
	b, _ := newBulk(t, nil)
	b.bulkPage("a", "tag latest 2.1.0", "1.0.0 - - x", "2.0.0 - - x", "2.1.0 - - x")
	rules := map[string]string{"2.1.0": "packages.lockfile"}
	b.door.rule(func(_ pkgref.Ref, f door.File) policy.Decision {
		if rule := rules[f.Version]; rule != "" {
			return policy.Decision{Effect: policy.Deny, Rule: rule, Reason: "no " + f.Version}
		}
		return policy.Decision{Effect: policy.Allow}
	})
	if got := b.bulkGet("a"); got.Header.Get("X-Notice") != "" || got.StatusCode != 200 {
		t.Errorf("%q, %s", got.Header.Get("X-Notice"), status(got))
	}
	rules["2.0.0"] = "packages.min_release_age"
	b.door.rule(b.door.decide)
	if got := b.bulkGet("a"); !strings.Contains(got.Header.Get("X-Notice"), "no 2.0.0") {
		t.Errorf("%q, %s", got.Header.Get("X-Notice"), status(got))
	}
}
