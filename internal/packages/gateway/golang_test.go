package gateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

const (
	logName = "sum.example"
	logPath = "/sumdb/" + logName + "/"
)

// newGoBench has one module proxy at the root of the index's host, which relays
// a checksum database that has the modules.
func newGoBench(t *testing.T, modules ...golangtest.Module) (*bench, *golangtest.Database) {
	t.Helper()
	b := &bench{t: t, registry: liar.New(t, indexHost, filesHost, "evil.example"), door: newDoor(t)}
	log := golangtest.NewDatabase(t, logName, modules...)
	b.cfg = gateway.Config{
		CacheDir: t.TempDir(), Protocols: []ecosystem.Protocol{golang.New()}, Resolver: b.registry, Version: "test", Limits: testLimits(),
		Upstreams: []upstream.Config{{Ecosystem: pkgref.Go, Index: b.registry.URL(indexHost, "/"), CAPEM: b.registry.CAPEM, Log: log.Verifier}},
	}
	b.cfg.Limits.Fresh, b.cfg.Limits.Stale = 1, 1
	b.goPublish(modules...)
	b.goLog(log)
	b.start()
	return b, log
}

func (b *bench) goPublish(modules ...golangtest.Module) {
	b.t.Helper()
	for path, a := range golangtest.Proxy(b.t, modules...) {
		b.registry.Script(indexHost+"/"+path, liar.Body(a.ContentType, a.Body))
	}
}

func (b *bench) goLog(log *golangtest.Database) {
	for path, a := range log.Answers() {
		b.registry.Script(indexHost+logPath+path, liar.Body(a.ContentType, a.Body))
	}
}

// goFiles are the paths of all that a release has.
func goFiles(tb testing.TB, m golangtest.Module) []string {
	tb.Helper()
	return []string{"/" + m.Escaped(tb, "zip"), "/" + m.Escaped(tb, "mod"), "/" + m.Escaped(tb, "info"), logPath + "lookup/" + m.Escaped(tb, "")}
}

// TestGoSpellings is G-NM-02 and way 15 for module paths: one spelling is right,
// and whatever else is refused before anybody is asked. A major version's
// suffix makes another module.
func TestGoSpellings(t *testing.T) {
	foo := golangtest.New(t, "corp.example/Foo", "v1.0.0")
	two := golangtest.New(t, "corp.example/Foo/v2", "v2.0.0")
	old := golangtest.Pack(t, "corp.example/Foo", "v3.0.0+incompatible", [2]string{"p.go", "package p\n"})
	pseudo := golangtest.New(t, "corp.example/Foo", "v0.0.0-20260102030405-0123456789ab")
	b, _ := newGoBench(t, foo, two, old, pseudo)
	for _, m := range []golangtest.Module{foo, two, old, pseudo} { // positive control
		for _, path := range goFiles(t, m) {
			if a := b.get(path); a.StatusCode != 200 {
				t.Errorf("%s: %s", path, status(a))
			}
		}
	}
	if a := b.get("/corp.example/%21foo/@v/list"); a.StatusCode != 200 && a.StatusCode != http.StatusBadRequest {
		t.Error(status(a))
	}
	b.door.rule(deny("corp.example/Foo"))
	for _, m := range []golangtest.Module{foo, old, pseudo} {
		for _, path := range append(goFiles(t, m), strings.Replace("/"+m.Escaped(t, "zip"), "!", "%21", 1)) {
			if a := b.get(path); a.StatusCode != http.StatusForbidden && a.StatusCode != http.StatusBadRequest || strings.Contains(a.body, "package") {
				t.Errorf("refused, %s: %s", path, status(a))
			}
		}
	}
	for _, path := range goFiles(t, two) {
		if a := b.get(path); a.StatusCode != 200 {
			t.Errorf("another module, %s: %s", path, status(a))
		}
	}
	asked := len(b.registry.Requests())
	for _, path := range []string{
		"/corp.example/Foo/@v/v1.0.0.zip", "/corp.example/!Foo/@v/v1.0.0.zip", "/corp.example/!!foo/@v/v1.0.0.zip", "/corp.example/%2521foo/@v/v1.0.0.zip",
		"/corp.example/!foo/@v/V1.0.0.zip", "/corp.example/!foo/@v/v1.0.zip", "/corp.example/!foo/@v/v2.0.0.zip", "/corp.example/!foo/v2/@v/v3.0.0.zip",
		"/corp.example/!foo/@v/v3.0.0%2Bincompatible%2f.zip", "/corp.example/!foo/@v/v1.0.0%00.zip", "/corp.example/!foo/@v/..%2fv1.0.0.zip", "/corp.example/!foo/../!foo/@v/v1.0.0.zip",
		"/corp.example//!foo/@v/v1.0.0.zip", "/corp.example/!foo/@v/v1.0.0.zip?x=y", "/corp.example/!foo/v1/@v/v1.0.0.zip", "/corp.example/f%c3%b6/@v/list", "/foo/@v/list", "/Corp.example/foo/@v/list",
		"/corp.example/!foo/@v/main.zip", "/corp.example/!foo/@v/main.mod", logPath + "lookup/corp.example/Foo@v1.0.0", logPath + "lookup/corp.example/!foo@main", logPath + "lookup/corp.example/!foo@v1.0",
	} {
		if a := b.raw(indexHost, "GET "+path+" HTTP/1.1\r\nHost: "+indexHost+"\r\n\r\n"); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	if r := b.registry.Requests()[asked:]; len(r) != 0 {
		t.Errorf("asked for: %v", r)
	}
}

// TestWhatMayNotLeaveIsNotAsked: in the name of a module, a version or what could become one,
// or a file; the client is told why, and no upstream hears anything.
func TestWhatMayNotLeaveIsNotAsked(t *testing.T) {
	foo, bar := golangtest.New(t, "corp.example/foo", "v1.0.0"), golangtest.New(t, "corp.example/bar", "v1.0.0")
	b, _ := newGoBench(t, foo, bar)
	asked := len(b.registry.Requests())
	for unsaid, path := range map[string]string{
		"bar": "/corp.example/bar/@v/list", "main": "/corp.example/foo/@v/main.info", "Main": "/corp.example/foo/@v/!main.info",
		"v1.0.0": "/corp.example/foo/@v/v1.0.0.zip", "1.0.0-key": "/corp.example/foo/@v/v1.0.0-key.mod",
	} {
		b.door.mu.Lock()
		b.door.unsaid = unsaid
		b.door.mu.Unlock()
		if a := b.get(path); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "it may not leave; request r-7; see: cofferdam why") {
			t.Errorf("%s: %s %s", path, status(a), a.body)
		}
	}
	if r := b.registry.Requests()[asked:]; len(r) != 0 {
		t.Errorf("asked for: %v", r)
	}
	if a := b.get("/corp.example/foo/@v/list"); a.StatusCode != http.StatusOK { // the control
		t.Errorf("%s", status(a))
	}
}

// TestGoFilesDecideAlone: zips and all that resolvers read of a refused module
// are refused before the proxy or the database hears its name.
func TestGoFilesDecideAlone(t *testing.T) {
	foo, bar := golangtest.New(t, "corp.example/foo", "v1.0.0"), golangtest.New(t, "corp.example/bar", "v1.0.0")
	b, _ := newGoBench(t, foo, bar)
	b.door.rule(deny("corp.example/bar"))
	asked := len(b.registry.Requests())
	for _, path := range append(goFiles(t, bar), "/corp.example/bar/@v/v1.0.1.zip", "/corp.example/bar/@v/main.info", "/corp.example/bar/@latest") {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if a := b.do(sandboxA, method, "https://"+indexHost+path, "Range", "bytes=0-"); a.StatusCode != http.StatusForbidden && (!strings.HasSuffix(path, "v1.0.1.zip") || a.StatusCode != http.StatusFailedDependency) {
				t.Errorf("%s %s: %s", method, path, status(a))
			}
		}
	}
	for _, r := range b.registry.Requests()[asked:] {
		// The database's word on a zip is a fact that the verdict is given by.
		if !strings.HasPrefix(r.Path, logPath) {
			t.Errorf("%s was asked for", r.Path)
		}
	}
	for _, path := range goFiles(t, foo) {
		if a := b.get(path); a.StatusCode != 200 {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	if n := len(b.door.Served()); n != 1 {
		t.Errorf("%d served", n)
	}
	b.door.rule(deny("corp.example/foo"))
	for _, path := range goFiles(t, foo) {
		if a := b.do("sb-b", http.MethodGet, "https://"+indexHost+path); a.StatusCode != http.StatusForbidden {
			t.Errorf("from a warm cache, %s: %s", path, status(a))
		}
	}
}

// TestGoMovedTags is G-IN-01: a version's bytes are the same for ever, whether
// or not there is a database.
func TestGoMovedTags(t *testing.T) {
	one := golangtest.New(t, "corp.example/foo", "v1.0.0")
	moved := golangtest.Pack(t, "corp.example/foo", "v1.0.0", [2]string{"go.mod", "module corp.example/foo\n\ngo 1.21\n// x\n"}, [2]string{"p.go", "package p // evil\n"})
	repacked := one
	repacked.Zip = golangtest.Zip(t, [2]string{"corp.example/foo@v1.0.0/p.go", "package p\n\n\nconst Version = \"v1.0.0\"\n"}, [2]string{"corp.example/foo@v1.0.0/go.mod", string(one.Mod)})
	for name, with := range map[string]bool{"with a database": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			b, log := newGoBench(t, one)
			if !with {
				b.cfg.Upstreams[0].Log = ""
				b.restart()
			}
			for _, path := range goFiles(t, one)[:2] {
				if a := b.get(path); a.StatusCode != 200 {
					t.Fatal(status(a))
				}
			}
			b.goPublish(moved)
			later := log.Fork()
			later.Add(moved)
			b.goLog(later)
			for range 2 { // the first ones are served from here, also after a restart
				if a := b.get(goFiles(t, one)[0]); a.StatusCode != 200 || a.body != string(one.Zip) {
					t.Errorf("the zip: %s", status(a))
				}
				if a := b.get(goFiles(t, one)[1]); a.StatusCode != 200 || a.body != string(one.Mod) {
					t.Errorf("the go.mod: %s", status(a))
				}
				b.restart()
			}
			b.emptyCache()
			a := b.get(goFiles(t, one)[0])
			if a.StatusCode != http.StatusFailedDependency || b.blobs() != 0 {
				t.Errorf("the other zip: %s", status(a))
			}
		})
	}
}

// emptyCache takes the blobs away: what binds files stays.
func (b *bench) emptyCache() {
	b.t.Helper()
	if err := os.RemoveAll(filepath.Join(b.cfg.CacheDir, "blobs")); err != nil {
		b.t.Fatal(err)
	}
	b.restart()
}

// TestGoAgainstTheDatabase is G-IN-02 and way 11: the gateway verifies by
// itself what it serves, so that no client's setting matters.
func TestGoAgainstTheDatabase(t *testing.T) {
	good := golangtest.New(t, "corp.example/foo", "v1.0.0")
	evil := golangtest.Pack(t, "corp.example/foo", "v1.0.0", [2]string{"go.mod", "module corp.example/foo\n"}, [2]string{"p.go", "package p // evil\n"})
	other := golangtest.New(t, "corp.example/other", "v1.0.0")
	for name, c := range map[string]struct {
		change  func(*bench, *golangtest.Database)
		refused []int // of goFiles
		says    string
	}{
		"nothing": {func(*bench, *golangtest.Database) {}, nil, ""}, // positive control
		"another zip": {func(b *bench, _ *golangtest.Database) {
			b.registry.Script(indexHost+"/"+good.Escaped(t, "zip"), liar.Body("application/zip", evil.Zip))
		}, []int{0}, "not the one that the upstream's transparency log has of it"},
		"another go.mod": {func(b *bench, _ *golangtest.Database) {
			b.registry.Script(indexHost+"/"+good.Escaped(t, "mod"), liar.Body("text/plain", evil.Mod))
		}, []int{1}, "not the one that the upstream's transparency log has of it"},
		"another module's zip": {func(b *bench, _ *golangtest.Database) {
			b.registry.Script(indexHost+"/"+good.Escaped(t, "zip"), liar.Body("application/zip", other.Zip))
		}, []int{0}, "not the one that the upstream's transparency log has of it"},
		"another module's record": {func(b *bench, log *golangtest.Database) {
			id := log.Add(other)
			b.goLog(log)
			b.registry.Script(indexHost+logPath+"lookup/"+good.Escaped(t, ""), liar.Body("text/plain", log.Record(id, log.Head(log.Size()))))
		}, []int{0, 1}, "lies or forks"},
		"another database's record": {func(b *bench, _ *golangtest.Database) {
			theirs := golangtest.NewDatabase(t, logName, evil)
			b.registry.Script(indexHost+"/"+good.Escaped(t, "zip"), liar.Body("application/zip", evil.Zip))
			b.goLog(theirs)
		}, []int{0, 1}, "lies or forks"},
		"no record": {func(b *bench, _ *golangtest.Database) {
			b.registry.Script(indexHost+logPath+"lookup/"+good.Escaped(t, ""), liar.Status(410))
		}, []int{0, 1}, "does not have this release"},
		"no database": {func(b *bench, _ *golangtest.Database) {
			b.registry.Script(indexHost+logPath+"lookup/"+good.Escaped(t, ""), liar.Status(500))
			b.registry.Script(indexHost+logPath+"latest", liar.Status(500))
		}, []int{0, 1}, "can't be asked"},
		"a captive page": {func(b *bench, _ *golangtest.Database) {
			b.registry.Script(indexHost+logPath+"lookup/"+good.Escaped(t, ""), liar.Body("text/html", []byte("<html>log in</html>")))
		}, []int{0, 1}, "is not a record"},
		"a tile of zeros": {func(b *bench, _ *golangtest.Database) {
			b.registry.Script(indexHost+logPath+"tile/8/0/000.p/1", liar.Body("application/octet-stream", make([]byte, 32)))
		}, []int{0, 1}, "lies or forks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, log := newGoBench(t, good)
			c.change(b, log)
			refused := map[int]bool{}
			for _, i := range c.refused {
				refused[i] = true
			}
			for i, path := range goFiles(t, good)[:2] {
				a := b.get(path)
				switch {
				case refused[i] && (a.StatusCode != http.StatusFailedDependency || !strings.Contains(a.body, c.says)):
					t.Errorf("%s: %s; want %q", path, status(a), c.says)
				case !refused[i] && a.StatusCode != 200:
					t.Errorf("%s: %s", path, status(a))
				}
			}
			if n := len(b.door.Failures()); n != len(c.refused) {
				t.Errorf("%d failures recorded", n)
			}
			if refused[0] && len(b.door.Served()) != 0 {
				t.Errorf("served %v", b.door.Served())
			}
		})
	}
}

// TestGoFork is G-IN-02: a database that shows two histories, both signed, is
// believed nothing any more.
func TestGoFork(t *testing.T) {
	one, two := golangtest.New(t, "corp.example/one", "v1.0.0"), golangtest.New(t, "corp.example/two", "v1.0.0")
	evil := golangtest.Pack(t, "corp.example/two", "v1.0.0", [2]string{"go.mod", "module corp.example/two\n"}, [2]string{"p.go", "package p // evil\n"})
	b, log := newGoBench(t, one)
	if a := b.get(goFiles(t, one)[0]); a.StatusCode != 200 {
		t.Fatal(status(a))
	}
	fork := log.Fork()
	fork.Add(evil)
	fork.Add(one)
	b.goPublish(evil)
	b.goLog(fork)
	for range 2 {
		for _, path := range []string{goFiles(t, two)[0], goFiles(t, two)[1]} {
			if a := b.get(path); a.StatusCode != http.StatusFailedDependency || !strings.Contains(a.body, "lies or forks") {
				t.Errorf("%s: %s", path, status(a))
			}
		}
		b.restart()
	}
	if n := len(b.door.Served()); n != 1 {
		t.Errorf("%d served", n)
	}
	log.Add(two) // positive control: an honest database has grown
	b.goPublish(two)
	b.goLog(log)
	b.restart()
	if a := b.get(goFiles(t, two)[0]); a.StatusCode != 200 {
		t.Errorf("the honest database: %s", status(a))
	}
}

// TestGoDatabases is way 34: of the databases only the upstream's own is asked,
// of its tiles only those that it can have, and nothing is made up.
func TestGoDatabases(t *testing.T) {
	foo := golangtest.New(t, "corp.example/foo", "v1.0.0")
	b, _ := newGoBench(t, foo)
	asked := len(b.registry.Requests())
	for path, want := range map[string]int{
		"/sumdb/evil.example/supported":                      200, // an answer of the gateway's own
		"/sumdb/evil.example/latest":                         404,
		"/sumdb/evil.example/lookup/corp.example/foo@v1.0.0": 404,
		"/sumdb/evil.example/tile/8/0/000":                   404,
		"/sumdb/sum.example.evil.example/latest":             404,
		"/sumdb/sum.example/x/latest":                        404,
		"/sumdb/sum.example%2f..%2fevil/latest":              400,
		"/sumdb/SUM.example/latest":                          404,
		logPath + "tile/4/0/000":                             400,
		logPath + "tile/8/data/000":                          400,
		logPath + "tile/8/0/x9/000":                          400,
		logPath + "tile/8/0/000.p/256":                       400,
		logPath + "tile/8/0/000.p/0":                         400,
		logPath + "treesize/1":                               404,
		logPath + "latest/x":                                 404,
		logPath + "supported?x":                              400,
	} {
		if a := b.get(path); a.StatusCode != want {
			t.Errorf("%s: %s; want %d", path, status(a), want)
		}
	}
	for _, r := range b.registry.Requests()[asked:] {
		if r.Path != logPath+"latest" { // how large it is
			t.Errorf("asked for %s", r.Path)
		}
	}
	for _, path := range []string{"latest", "lookup/" + foo.Escaped(t, ""), "tile/8/0/000.p/1"} { // positive control
		if a := b.get(logPath + path); a.StatusCode != 200 {
			t.Errorf("%s: %s", path, status(a))
		}
	}
}

// TestGoLyingLists is G-IN-05 and -08 for lists of versions, and what a proxy
// that has no module answers.
func TestGoLyingLists(t *testing.T) {
	foo := golangtest.New(t, "corp.example/foo", "v1.0.0")
	list := func(s string) liar.Reply { return liar.Body("text/plain", []byte(s)) }
	const path = "/corp.example/foo/@v/list"
	for name, c := range map[string]struct {
		reply liar.Reply
		want  int
	}{
		"html":               {liar.Body("text/html", []byte("<html>")), 424},
		"html as text":       {list("<html>\nlog in</html>\n"), 424},
		"a sentence":         {list("not found: module\n"), 424},
		"garbage":            {list("v1.0.0\n\x00\xff\n"), 424},
		"an escape sequence": {list("v1.0.0\x1b[2J\n"), 424},
		"a path":             {list("../../v1.0.0\n"), 424},
		"a long line":        {list("v1.0.0-" + strings.Repeat("x", 1<<20)), 424},
		"10^6 versions":      {liar.Stream("text/plain", manyLines), 424},
		"cut":                {liar.Claim("text/plain", 100, []byte("v1.0.0\n")), 424},
		"206":                {liar.Partial("text/plain", []byte("v1.0.0\nv1.1.0\n")), 424},
		"404":                {liar.Status(404), 404},
		"410":                {liar.Status(410), 404},
		"403":                {liar.Status(403), 424},
		"to elsewhere":       {liar.Redirect("https://evil.example" + path), 424},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := newGoBench(t, foo)
			b.registry.Script(indexHost+path, c.reply)
			if a := b.get(path); a.StatusCode != c.want || len(b.door.Failures()) != 1 || b.registry.Count("evil.example"+path) != 0 {
				t.Errorf("%s; failures %v", status(a), b.door.Failures())
			}
			b.goPublish(foo)
			if a := b.get(path); a.StatusCode != 200 || a.body != "v1.0.0\n" {
				t.Errorf("after the lie: %s", status(a))
			}
		})
	}
	b, _ := newGoBench(t, foo) // what is no version of the module is left out, and the rest stays
	b.registry.Script(indexHost+path, list("v1.0.0\nv2.0.0\nv1.0\n1.0.0\nv1.0.0-20260102030405-0123456789ab\n"))
	if a := b.get(path); a.StatusCode != 200 || a.body != "v1.0.0-20260102030405-0123456789ab\nv1.0.0\n" {
		t.Errorf("a list with more than versions: %s", status(a))
	}
}

func manyLines(i int) []byte {
	if i > 1000 {
		return nil
	}
	var b bytes.Buffer
	for n := range 1000 {
		b.WriteString("v1." + strconv.Itoa(i) + "." + strconv.Itoa(n) + "\n")
	}
	return b.Bytes()
}

// TestGoHostileZips is ways 12 and 26: whatever the database vouches for, a zip that two
// readers would read differently is nobody's.
func TestGoHostileZips(t *testing.T) {
	const at = "corp.example/foo@v1.0.0/"
	mod := [2]string{at + "go.mod", "module corp.example/foo\n"}
	for name, zip := range map[string][]byte{
		"good":                     golangtest.Zip(t, mod, [2]string{at + "p.go", "package p\n"}), // positive control
		"another module's go.mod":  golangtest.Zip(t, [2]string{at + "go.mod", "module corp.example/evil\n"}),
		"another module's files":   golangtest.Zip(t, mod, [2]string{"corp.example/evil@v1.0.0/p.go", ""}),
		"cases":                    golangtest.Zip(t, mod, [2]string{at + "a.go", "1"}, [2]string{at + "A.go", "2"}),
		"twice":                    golangtest.Zip(t, mod, [2]string{at + "a.go", "1"}, [2]string{at + "a.go", "2"}),
		"a way out":                golangtest.Zip(t, mod, [2]string{at + "../../x", ""}),
		"a bomb":                   golangtest.Zip(t, mod, [2]string{at + "zeros", strings.Repeat("\x00", 100<<20)}),
		"something in front of it": append([]byte("#!/bin/sh\n"), golangtest.Zip(t, mod)...),
		"something behind it":      append(golangtest.Zip(t, mod), golangtest.Zip(t, mod)...),
		"no zip":                   []byte("<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			m := golangtest.Pack(t, "corp.example/foo", "v1.0.0", [2]string{"go.mod", "module corp.example/foo\n"}, [2]string{"p.go", "package p\n"})
			m.Zip = zip
			b, _ := newGoBench(t, m)
			b.cfg.Upstreams[0].Log = "" // nobody else objects
			b.restart()
			a := b.get("/" + m.Escaped(t, "zip"))
			if name == "good" {
				if a.StatusCode != 200 {
					t.Error(status(a))
				}
				return
			}
			if a.StatusCode != http.StatusFailedDependency || len(b.door.Failures()) != 1 || len(b.door.Served()) != 0 {
				t.Error(status(a))
			}
		})
	}
}

// TestGoWithheldVersions: a list and its zips agree, pseudo-versions among them.
func TestGoWithheldVersions(t *testing.T) {
	var modules []golangtest.Module
	for _, v := range []string{"v1.0.0", "v1.1.0", "v1.2.0-rc.1", "v1.1.1-0.20260102030405-0123456789ab"} {
		modules = append(modules, golangtest.New(t, "corp.example/foo", v))
	}
	b, _ := newGoBench(t, modules...)
	b.door.rule(func(ref pkgref.Ref, f door.File) policy.Decision {
		if f.Kind != policy.KindMetadata && ref.Version != "v1.0.0" {
			return policy.Decision{Effect: policy.Deny, Reason: ref.Version + " is outside the range"}
		}
		return policy.Decision{Effect: policy.Allow}
	})
	if a := b.get("/corp.example/foo/@v/list"); a.StatusCode != 200 || a.body != "v1.0.0\n" {
		t.Errorf("the list: %s", status(a))
	}
	for _, m := range modules {
		want := http.StatusForbidden
		if m.Version == "v1.0.0" {
			want = http.StatusOK
		}
		if a := b.get(goFiles(t, m)[0]); a.StatusCode != want {
			t.Errorf("%s: %s", m.Version, status(a))
		}
		if n := b.registry.Count(indexHost + goFiles(t, m)[0]); (n != 0) != (want == http.StatusOK) {
			t.Errorf("%s: the proxy was asked for the zip %d times", m.Version, n)
		}
	}
}

// TestWhatAnUpstreamDoesNotGive: its 403 is its own answer, on record as that, of a page as
// of a small file, and its 503 its own failure; what can't be verified is a refusal of ours.
func TestWhatAnUpstreamDoesNotGive(t *testing.T) {
	m := golangtest.New(t, "corp.example/foo", "v1.0.0")
	b, _ := newGoBench(t, m)
	b.registry.Script(indexHost+"/corp.example/@v/list", liar.Status(http.StatusForbidden))
	b.registry.Script(indexHost+"/corp.example/@v/v1.0.0.info", liar.Status(http.StatusUnauthorized))
	b.registry.Script(indexHost+"/corp.example/away/@v/list", liar.Status(http.StatusServiceUnavailable))
	b.registry.Script(indexHost+"/corp.example/foo/@v/v1.0.0.mod", liar.Body("text/plain", []byte("module corp.example/other\n")))
	for path, declined := range map[string]bool{"/corp.example/@v/list": true, "/corp.example/@v/v1.0.0.info": true, "/corp.example/away/@v/list": false, "/corp.example/foo/@v/v1.0.0.mod": false} {
		a := b.get(path)
		if own := strings.Contains(a.Status, "Declined upstream"); a.StatusCode != http.StatusFailedDependency || own != declined {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	var said []string
	for _, f := range b.door.Failures() {
		said = append(said, fmt.Sprintf("%s %s %s %v", f.Package.Name, f.File, f.Rule, f.Metadata))
	}
	slices.Sort(said)
	want := []string{"corp.example  upstream.declined false", "corp.example v1.0.0.info upstream.declined true", "corp.example/away  upstream.failed false", "corp.example/foo v1.0.0.mod  true"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
}
