package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

func text(s string) liar.Reply { return liar.Body("text/plain", []byte(s)) }

// TestAttachments: judged by the name before anybody hears it, vouched for by
// the log, and what they require is known before the client can ask for it.
func TestAttachments(t *testing.T) {
	b := newWitnessBench(t, nil)
	const mod = "1.0.0 bar baz"
	b.registry.Script(indexHost+"/foo/1.0.0.mod", text(mod), liar.Status(500))
	b.record("foo@1.0.0", toyRecord{Attachment: toySum([]byte(mod)), Size: 1})
	for i := range 3 {
		if i == 2 {
			b.restart()
		}
		a := b.get("/foo/1.0.0.mod")
		if a.StatusCode != 200 || a.body != mod || a.Header.Get("Content-Type") != "text/x-toy" || a.Header.Get("Content-Length") != "13" {
			t.Fatal(status(a))
		}
	}
	if a := b.do(sandboxA, http.MethodHead, "https://"+indexHost+"/foo/1.0.0.mod"); a.StatusCode != 200 || a.body != "" {
		t.Error(status(a))
	}
	if n := b.registry.Count(indexHost + "/foo/1.0.0.mod"); n != 1 {
		t.Errorf("asked for %d times", n)
	}
	if diff := cmp.Diff([]door.Requirement{{Name: "bar"}, {Name: "baz"}}, b.door.edges["go foo 1.0.0"]); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
	if len(b.door.Served()) != 0 || len(b.door.Failures()) != 0 {
		t.Errorf("served %v, failed %v", b.door.Served(), b.door.Failures())
	}
	b.door.rule(func(_ pkgref.Ref, f door.File) policy.Decision {
		if f.Digest != "" && f.Digest != toySum([]byte(mod)) {
			t.Errorf("the door was told the digest %s", f.Digest)
		}
		if f.Digest != "" {
			return policy.Decision{Effect: policy.Deny, Reason: "it is not the pinned one"}
		}
		return policy.Decision{Effect: policy.Allow}
	})
	if a := b.get("/foo/1.0.0.mod"); a.StatusCode != 403 || !strings.Contains(a.Status, "it is not the pinned one") {
		t.Errorf("metadata with another digest than a lockfile has: %s", status(a))
	}
	before := len(b.registry.Requests())
	b.door.rule(func(_ pkgref.Ref, f door.File) policy.Decision {
		if f.Kind != policy.KindMetadata || f.Name != "1.0.0.mod" || f.Version != "1.0.0" {
			t.Errorf("the door was asked about %+v", f)
		}
		return policy.Decision{Effect: policy.Deny, Reason: "secret is on no list"}
	})
	if a := b.get("/secret/1.0.0.mod"); a.StatusCode != 403 || !strings.Contains(a.Status, "secret is on no list") {
		t.Error(status(a))
	}
	if n := len(b.registry.Requests()); n != before {
		t.Error("the upstream heard a refused name")
	}
}

// TestLyingAttachments: what the log does not vouch for is nobody's, and not kept.
func TestLyingAttachments(t *testing.T) {
	const mod = "1.0.0 bar"
	for name, c := range map[string]struct {
		reply  liar.Reply
		record toyRecord
	}{
		"other bytes":          {text("1.0.0 evil"), toyRecord{Attachment: toySum([]byte(mod)), Size: 1}},
		"not in the log":       {text(mod), toyRecord{Size: 1}},
		"another release":      {text("2.0.0"), toyRecord{Attachment: toySum([]byte("2.0.0")), Size: 1}},
		"a captive page":       {text("<html>"), toyRecord{Attachment: toySum([]byte("<html>")), Size: 1}},
		"too large":            {liar.Body("text/plain", make([]byte, 17<<20)), toyRecord{Size: 1}},
		"to another host":      {liar.Redirect("https://evil.example/"), toyRecord{Size: 1}},
		"a log that is broken": {text(mod), toyRecord{Lie: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWitnessBench(t, nil)
			b.registry.Script(indexHost+"/foo/1.0.0.mod", c.reply)
			b.record("foo@1.0.0", c.record)
			refusedWithRecord(t, b, b.get("/foo/1.0.0.mod"), 0)
			if len(b.door.edges) != 0 {
				t.Errorf("edges %v", b.door.edges)
			}
		})
	}
}

// TestQueries: what a branch leads to is judged when it is known, asked for
// again when it is no longer fresh, and had from the cache when nobody answers.
func TestQueries(t *testing.T) {
	b := newWitnessBench(t, nil)
	b.registry.Script(indexHost+"/foo/main.info", text("1.0.0"), text("2.0.0"))
	b.door.rule(func(r pkgref.Ref, f door.File) policy.Decision {
		if f.Name != "main.info" || r.Version == "main" {
			t.Errorf("the door was asked about %v, %+v", r, f)
		}
		if r.Version == "2.0.0" {
			return policy.Decision{Effect: policy.Deny, Reason: "2.0.0 is too new"}
		}
		return policy.Decision{Effect: policy.Allow}
	})
	for range 2 {
		if a := b.get("/foo/main.info"); a.StatusCode != 200 || a.body != "1.0.0" {
			t.Fatal(status(a))
		}
	}
	if n := b.registry.Count(indexHost + "/foo/main.info"); n != 1 {
		t.Errorf("asked for %d times while it was fresh", n)
	}
	alwaysAsking(&b.cfg)
	b.restart()
	if a := b.get("/foo/main.info"); a.StatusCode != 403 || !strings.Contains(a.Status, "2.0.0 is too new") {
		t.Error(status(a))
	}
	b.door.rule(allowAll)
	b.registry.Down()
	if a := b.get("/foo/main.info"); a.StatusCode != 200 || a.body != "2.0.0" {
		t.Errorf("without the upstream: %s", status(a))
	}
	if a := b.get("/bar/main.info"); a.StatusCode != http.StatusFailedDependency {
		t.Errorf("what was never had: %s", status(a))
	}
}

// TestMissingAttachments: resolvers try names, so what there is not is no
// incident; how many names may be tried is bounded.
func TestMissingAttachments(t *testing.T) {
	b := newWitnessBench(t, nil)
	b.cfg.Limits.RefusedNames = 3
	b.restart()
	for i := range 10 {
		name := "leak" + string(rune('a'+i))
		a := b.get("/" + name + "/1.0.0.mod")
		if want := map[bool]int{true: 404, false: 403}[i < 3]; a.StatusCode != want {
			t.Errorf("%s: %s", name, status(a))
		}
	}
	if n := len(b.registry.Requests()); n != 3 {
		t.Errorf("%d names reached the upstream", n)
	}
	if n := len(b.door.Failures()); n != 7 {
		t.Errorf("%d failures recorded, want those of the limit", n)
	}
}

// TestRelayedBytes: what clients verify themselves is relayed whole or not at
// all, of this upstream's log only, and kept: for ever if it never changes, else
// for when the upstream is down.
func TestRelayedBytes(t *testing.T) {
	b := newWitnessBench(t, nil)
	at := func(path string, replies ...liar.Reply) { b.registry.Script(indexHost+path, replies...) }
	at("/sumdb/sum.example/tile/1", liar.Status(502), liar.Body("text/html", []byte{0, 1, 2}), liar.Status(500))
	at("/sumdb/sum.example/latest", text("head 1"), text("head 2"))
	at("/sumdb/sum.example/tile/large", liar.Body("text/plain", make([]byte, 101)))
	at("/sumdb/evil.example/tile/1", text("evil"))
	at("/sumdb/sum.example/lookup/foo@1.0.0", text("record"))
	b.cfg.Limits.Upstream.Attempts = 1
	b.restart()
	for i, want := range []struct {
		path, body, typ string
		status          int
	}{
		{"/sumdb/sum.example/tile/1", "", "", 424}, // and the failure is not kept
		{"/sumdb/sum.example/tile/1", "\x00\x01\x02", "application/octet-stream", 200},
		{"/sumdb/sum.example/tile/1", "\x00\x01\x02", "application/octet-stream", 200},
		{"/sumdb/sum.example/latest", "head 1", "text/plain; charset=utf-8", 200},
		{"/sumdb/sum.example/latest", "head 2", "text/plain; charset=utf-8", 200},
		{"/sumdb/sum.example/tile/large", "", "", 424},
		{"/sumdb/sum.example/tile/none", "", "", 404},
		{"/sumdb/evil.example/tile/1", "", "", 404},
		{"/sumdb/sum.example.evil.example/tile/1", "", "", 404},
		{"/sumdb/sum.example/lookup/foo@1.0.0", "record", "text/plain; charset=utf-8", 200},
	} {
		a := b.get(want.path)
		if a.StatusCode != want.status || (want.status == 200 && (a.body != want.body || a.Header.Get("Content-Type") != want.typ)) {
			t.Errorf("%d %s: %s %v", i, want.path, status(a), a.Header)
		}
	}
	for path, most := range map[string]int{"/sumdb/sum.example/tile/1": 2, "/sumdb/evil.example/tile/1": 0} {
		if n := b.registry.Count(indexHost + path); n != most {
			t.Errorf("%s was asked for %d times, want %d", path, n, most)
		}
	}
	b.door.rule(func(pkgref.Ref, door.File) policy.Decision {
		return policy.Decision{Effect: policy.Deny, Reason: "it is on no list"}
	})
	if a := b.get("/sumdb/sum.example/lookup/secret@1.0.0"); a.StatusCode != 403 || b.registry.Count(indexHost+"/sumdb/sum.example/lookup/secret@1.0.0") != 0 {
		t.Errorf("a lookup of a refused name: %s", status(a))
	}
	b.registry.Down()
	for path, want := range map[string]string{"tile/1": "\x00\x01\x02", "latest": "head 2"} {
		if a := b.get("/sumdb/sum.example/" + path); a.StatusCode != 200 || a.body != want {
			t.Errorf("%s without the upstream: %s", path, status(a))
		}
	}
}

// TestPartsThatGrow: of what only grows the longest part that was seen is kept,
// and answers for all that are shorter.
func TestPartsThatGrow(t *testing.T) {
	b := newWitnessBench(t, nil)
	for width, body := range map[string]string{"2": "ab", "4": "abcd", "5": "short"[:4]} {
		b.registry.Script(indexHost+"/sumdb/sum.example/tile/7.p/"+width, text(body))
	}
	ask := func(width, want string, status int) {
		t.Helper()
		if a := b.get("/sumdb/sum.example/tile/7.p/" + width); a.StatusCode != status || (status == 200 && a.body != want) {
			t.Errorf("a part of %s: %d %q", width, a.StatusCode, a.body)
		}
	}
	ask("2", "ab", 200)
	ask("4", "abcd", 200)
	ask("5", "shor", 200) // it proves nothing, and is not kept
	b.registry.Down()
	for width, want := range map[string]string{"1": "a", "2": "ab", "3": "abc", "4": "abcd"} {
		ask(width, want, 200)
	}
	ask("5", "", 424)
}

// TestKeysAreRelayed: a protocol without a log may relay too.
func TestKeysAreRelayed(t *testing.T) {
	b := newToyBench(t, newToy(pkgref.Node), nil)
	b.registry.Script(indexHost+"/keys", text("{}"))
	if a := b.get("/keys"); a.StatusCode != 200 || a.body != "{}" {
		t.Error(status(a))
	}
}
