package gateway_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

func newWitnessBench(t *testing.T, change func(*bench, *upstream.Config)) *bench {
	t.Helper()
	return newToyBench(t, witnessed{addressed{newToy(pkgref.Go)}}, func(b *bench, u *upstream.Config) {
		u.Log = toyLog
		if change != nil {
			change(b, u)
		}
	})
}

// TestWitnessedFiles: the log has the digest and the time, and the index is not
// even asked for. A module that was had once is had without the upstream.
func TestWitnessedFiles(t *testing.T) {
	b := newWitnessBench(t, nil)
	body := b.file(indexHost, toyPackage{Name: "foo", Version: "1.0.0"})
	b.record("foo@1.0.0", toyRecord{File: toySum(body), Position: 3, Size: 20})
	young := b.file(indexHost, toyPackage{Name: "young", Version: "1.0.0"})
	b.record("young@1.0.0", toyRecord{File: toySum(young), Position: 15, Size: 20})
	newest := b.file(indexHost, toyPackage{Name: "newest", Version: "1.0.0"})
	b.record("newest@1.0.0", toyRecord{File: toySum(newest), Position: 30, Size: 40})
	for _, path := range []string{"/foo/1.0.0.pkg", "/young/1.0.0.pkg", "/newest/1.0.0.pkg"} {
		if a := b.get(path); a.StatusCode != 200 {
			t.Fatal(status(a))
		}
	}
	served := b.door.Served()
	if f := served[0].File; f.Digest != toySum(body) || !f.Published.Equal(time.Unix(shippedSize, 0)) || f.FirstSeen.IsZero() {
		t.Errorf("served %+v", f)
	}
	if d := served[0].Digests; len(d) != 3 || d[0] != toySum(body) || d[1] != sha256Of(body) || d[2] != sha512Of(body) {
		t.Errorf("digests %v", d)
	}
	if age := time.Since(served[1].File.Published); age < 0 || age > time.Hour {
		t.Errorf("a record that was observed today first is said to be %v old", age)
	}
	if f := served[2].File; !f.Published.IsZero() {
		t.Errorf("the size was observed twice a day: %v", f.Published)
	}
	for _, r := range b.registry.Requests() {
		if strings.Count(r.Path, "/") == 1 {
			t.Errorf("the index was asked for %s", r.Path)
		}
	}
	b.registry.Down()
	b.restart()
	if a := b.get("/foo/1.0.0.pkg"); a.StatusCode != 200 || a.body != string(body) {
		t.Errorf("without the upstream: %s", status(a))
	}
	if again := b.door.Served()[3].File; !reflect.DeepEqual(again, served[0].File) {
		t.Errorf("served %+v, then %+v", served[0].File, again)
	}
}

// TestWitnessAgainst is G-IN-02 for logs: what the log does not vouch for is
// refused, and nothing of it is kept.
func TestWitnessAgainst(t *testing.T) {
	pkg := toyPackage{Name: "foo", Version: "1.0.0"}
	for name, c := range map[string]struct {
		record toyRecord
		reply  liar.Reply // instead of a record
		says   string
	}{
		"another digest":        {toyRecord{File: toySum([]byte("x")), Size: 1}, nil, "not the one that the upstream's transparency log has of it"},
		"no digest":             {toyRecord{Size: 1}, nil, "the upstream's transparency log has no digest of 1.0.0.pkg"},
		"no such record":        {toyRecord{}, liar.Status(404), "does not have this release"},
		"a record that's a lie": {toyRecord{Lie: ", "}, nil, "the upstream's transparency log lies or forks"},
		"no answer":             {toyRecord{}, liar.Status(502), "can't be asked"},
		"a page":                {toyRecord{}, liar.Body("text/html", []byte("<html>")), "the upstream's transparency log lies or forks"},
		"too much":              {toyRecord{}, liar.Body("text/plain", make([]byte, 2<<20)), "can't be asked"},
		"to elsewhere":          {toyRecord{}, liar.Redirect("https://evil.example/"), "can't be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWitnessBench(t, nil)
			body := b.file(indexHost, pkg)
			b.record("foo@1.0.0", c.record)
			if c.reply != nil {
				b.registry.Script(indexHost+"/sumdb/sum.example/lookup/foo@1.0.0", c.reply)
			}
			a := b.get("/foo/1.0.0.pkg")
			refusedWithRecord(t, b, a, 0)
			if !strings.Contains(a.Status, c.says) {
				t.Error(a.Status)
			}
			b.record("foo@1.0.0", toyRecord{File: toySum(body), Size: 1})
			a = b.get("/foo/1.0.0.pkg")
			recovers := strings.Contains(c.says, "can't be asked") || strings.Contains(c.says, "does not have")
			if recovers != (a.StatusCode == 200) {
				t.Errorf("after the lie: %s", status(a))
			}
		})
	}
}

// TestForkedLog: a log that once lied is believed nothing more, not even what
// it said before, until the gateway is started anew.
func TestForkedLog(t *testing.T) {
	b := newWitnessBench(t, nil)
	foo, bar := b.file(indexHost, toyPackage{Name: "foo", Version: "1.0.0"}), b.file(indexHost, toyPackage{Name: "bar", Version: "1.0.0"})
	b.record("foo@1.0.0", toyRecord{File: toySum(foo), Size: 20})
	b.record("bar@1.0.0", toyRecord{File: toySum(bar), Size: 10}) // smaller than it was
	b.registry.Script(indexHost+"/foo/1.0.0.mod", liar.Body("text/plain", []byte("1.0.0")))
	if a := b.get("/foo/1.0.0.pkg"); a.StatusCode != 200 {
		t.Fatal(status(a))
	}
	for _, path := range []string{"/bar/1.0.0.pkg", "/foo/1.0.0.pkg", "/foo/1.0.0.mod"} {
		a := b.get(path)
		if a.StatusCode != http.StatusFailedDependency || !strings.Contains(a.Status, "lies or forks (the log has shrunk)") {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	if n := len(b.door.Failures()); n != 3 {
		t.Errorf("%d failures recorded, want one for each request", n)
	}
	b.restart()
	if a := b.get("/foo/1.0.0.pkg"); a.StatusCode != 200 {
		t.Errorf("what was verified, after a restart: %s", status(a))
	}
	if a := b.get("/bar/1.0.0.pkg"); a.StatusCode != http.StatusFailedDependency {
		t.Errorf("the fork, after a restart: %s", status(a))
	}
	b.record("bar@1.0.0", toyRecord{File: toySum(bar), Size: 30})
	b.restart()
	if a := b.get("/bar/1.0.0.pkg"); a.StatusCode != 200 {
		t.Errorf("the log has grown again: %s", status(a))
	}
}

// TestDamagedLog: what is kept of the log is not begun anew where it can't be
// read, since the log could then have been any; the log is not blamed.
func TestDamagedLog(t *testing.T) {
	b := newWitnessBench(t, nil)
	foo, bar := b.file(indexHost, toyPackage{Name: "foo", Version: "1.0.0"}), b.file(indexHost, toyPackage{Name: "bar", Version: "1.0.0"})
	b.record("foo@1.0.0", toyRecord{File: toySum(foo), Size: 20})
	b.record("bar@1.0.0", toyRecord{File: toySum(bar), Size: 10})
	b.get("/foo/1.0.0.pkg")
	kept, err := filepath.Glob(filepath.Join(b.cfg.CacheDir, "shelves", "log", "*", "config", "*"))
	if err != nil || len(kept) != 2 {
		t.Fatalf("%v, %v", kept, err)
	}
	for _, path := range kept {
		data, err := os.ReadFile(path)
		must(t, err)
		if bytes.Contains(data, []byte("config head")) {
			must(t, os.WriteFile(path, data[:len(data)-1], 0o600))
		}
	}
	if a := b.get("/bar/1.0.0.pkg"); a.StatusCode != http.StatusFailedDependency || !strings.Contains(a.Status, "a value in the cache is damaged") {
		t.Errorf("with a damaged head: %s", status(a))
	}
	if a := b.get("/foo/1.0.0.pkg"); a.StatusCode != 200 {
		t.Errorf("what was verified before: %s", status(a))
	}
}

// TestTimesOfAPage: files without a time get the one that the log's size gives.
func TestTimesOfAPage(t *testing.T) {
	b := newWitnessBench(t, nil)
	b.door.times = true
	b.list(indexHost, "foo", toyFile{Version: "1.0.0"}, toyFile{Version: "1.1.0"}, toyFile{Version: "1.2.0"})
	b.record("foo@1.0.0", toyRecord{Position: 3, Size: 20})
	b.record("foo@1.1.0", toyRecord{Position: 25, Size: 20}) // no size is known that had it
	b.get("/foo")                                            // 1.2.0 is not in the log
	asks := b.door.asks
	files := asks[len(asks)-1].Files
	if len(files) != 3 || !files[0].Published.Equal(time.Unix(shippedSize, 0)) || !files[1].Published.IsZero() || !files[2].Published.IsZero() {
		t.Errorf("the door was told %+v", files)
	}
}

// TestLogElsewhere: a log with a base of its own is asked there, without the
// upstream's credentials.
func TestLogElsewhere(t *testing.T) {
	b := newWitnessBench(t, func(b *bench, u *upstream.Config) {
		u.LogURL, u.Username, u.Password = b.registry.URL(filesHost, "/log"), "user", "secret"
	})
	body := b.file(indexHost, toyPackage{Name: "foo", Version: "1.0.0"})
	b.record("foo@1.0.0", toyRecord{Lie: "the upstream's own word"})
	b.registry.Script(filesHost+"/log/lookup/foo@1.0.0", liar.Body("text/plain", []byte(`{"File":"`+toySum(body)+`","Size":1}`)))
	b.registry.Script(filesHost+"/log/tile/1", liar.Body("text/plain", []byte("tile")))
	if a := b.get("/foo/1.0.0.pkg"); a.StatusCode != 200 {
		t.Error(status(a))
	}
	if a := b.get("/sumdb/sum.example/tile/1"); a.StatusCode != 200 || a.body != "tile" {
		t.Error(status(a))
	}
	for _, r := range b.registry.Requests() {
		if secret := r.Header.Get("Authorization") != ""; secret != (r.Host == indexHost) {
			t.Errorf("credentials for %s%s: %v", r.Host, r.Path, secret)
		}
	}
	if b.gateway.IsRegistry(filesHost) {
		t.Error("the log's own host is a name of the gateway")
	}
}

// TestWithoutALog: a protocol that is a witness has nothing to witness where
// the upstream has no log; the first bytes count.
func TestWithoutALog(t *testing.T) {
	b := newToyBench(t, witnessed{addressed{newToy(pkgref.Go)}}, nil)
	body := b.file(indexHost, toyPackage{Name: "foo", Version: "1.0.0"})
	b.registry.Script(indexHost+"/foo/1.0.0.mod", liar.Body("text/plain", []byte("1.0.0")))
	for _, path := range []string{"/foo/1.0.0.pkg", "/foo/1.0.0.mod"} {
		if a := b.get(path); a.StatusCode != 200 {
			t.Error(status(a))
		}
	}
	if s := b.door.Served()[0]; s.File.Digest != "" || len(s.Digests) != 3 || s.Digests[2] != toySum(body) {
		t.Errorf("a lockfile can't be compared with %+v", s)
	}
	if a := b.get("/sumdb/sum.example/tile/1"); a.StatusCode != 404 || b.registry.Count(indexHost+"/sumdb/sum.example/tile/1") != 0 {
		t.Errorf("a log that nobody named: %s", status(a))
	}
}
