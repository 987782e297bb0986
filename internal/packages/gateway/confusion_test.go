package gateway_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// newConfusedBench has a public registry of npm's and Go's protocol on one
// host and a private one on another. The public ones have better versions of
// the private names, and a checksum database that vouches for them.
func newConfusedBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, registry: liar.New(t, indexHost, filesHost), door: newDoor(t)}
	ours, theirs := golangtest.New(t, "corp.example/lib", "v1.0.0"), golangtest.New(t, "corp.example/lib", "v1.9.0")
	log := golangtest.NewDatabase(t, logName, ours, theirs)
	config := func(eco pkgref.Ecosystem, host, below, log string) upstream.Config {
		return upstream.Config{Ecosystem: eco, Index: b.registry.URL(host, below), CAPEM: b.registry.CAPEM, Log: log}
	}
	b.cfg = gateway.Config{
		CacheDir: t.TempDir(), Protocols: []ecosystem.Protocol{npm.New(), golang.New()}, Resolver: b.registry, Version: "test", Limits: testLimits(),
		Upstreams: []upstream.Config{
			config(pkgref.Node, indexHost, "/", ""), config(pkgref.Node, filesHost, "/", ""),
			config(pkgref.Go, indexHost, "/go/", log.Verifier), config(pkgref.Go, filesHost, "/go/", ""),
		},
	}
	b.cfg.Limits.Fresh, b.cfg.Limits.Stale = 1, 1
	b.nodePublish(filesHost, nil, npmtest.Pack(t, "@corp/lib", "1.0.0", nil))
	b.nodePublish(indexHost, nil, npmtest.Pack(t, "@corp/lib", "1.0.0", nil, [2]string{"evil.js", ""}), npmtest.Pack(t, "@corp/lib", "99.0.0", nil))
	for host, m := range map[string]golangtest.Module{filesHost: ours, indexHost: theirs} {
		for path, a := range golangtest.Proxy(t, m) {
			b.registry.Script(host+"/go/"+path, liar.Body(a.ContentType, a.Body))
		}
	}
	for path, a := range log.Answers() {
		b.registry.Script(indexHost+"/go"+logPath+path, liar.Body(a.ContentType, a.Body))
	}
	b.start()
	return b
}

// privatePaths are all that a client can ask of a private name, or tell of it.
func privatePaths(eco pkgref.Ecosystem) []string {
	if eco == pkgref.Go {
		paths := []string{"/@latest", "/@v/list", "/@v/main.info"}
		for _, v := range []string{"v1.0.0", "v1.9.0"} {
			paths = append(paths, "/@v/"+v+".info", "/@v/"+v+".mod", "/@v/"+v+".zip")
		}
		for i, p := range paths {
			paths[i] = "/go/corp.example/lib" + p
		}
		return append(paths, "/go"+logPath+"lookup/corp.example/lib@v1.0.0", "/go"+logPath+"lookup/corp.example/lib@v1.9.0")
	}
	return []string{
		"/@corp/lib", "/@corp%2flib", "/@corp%2Flib/latest", "/@corp/lib/99.0.0", "/@corp/lib/-/lib-1.0.0.tgz", "/@corp/lib/-/lib-99.0.0.tgz",
		"/-/package/@corp%2flib/dist-tags", "/-/npm/v1/attestations/@corp%2flib@1.0.0", "/-/npm/v1/attestations/@corp/lib@99.0.0",
	}
}

// TestPrivateNames is G-NM-04 and way 35 with the real protocols: of a private
// name the public registry hears nothing, by no route, whether its own registry
// has it, has it not, is down or lies.
func TestPrivateNames(t *testing.T) {
	for _, eco := range []pkgref.Ecosystem{pkgref.Node, pkgref.Go} {
		below := map[pkgref.Ecosystem]string{pkgref.Node: "/", pkgref.Go: "/go/"}[eco]
		for name, replies := range map[string]liar.Reply{
			"there": nil, "not there": liar.Status(404), "gone": liar.Status(410), "down": liar.Status(503), "closed": liar.Status(401), "cut": liar.Cut(),
			"to the public one": liar.Redirect("https://index.example" + below),
		} {
			t.Run(string(eco)+" "+name, func(t *testing.T) {
				t.Parallel()
				b := newConfusedBench(t)
				b.door.owner = b.registry.URL(filesHost, below)
				for _, path := range privatePaths(eco) {
					if replies != nil {
						b.registry.Script(filesHost+path, replies)
					}
				}
				if replies != nil {
					b.registry.Script(nodePage(filesHost, "@corp/lib"), replies)
				}
				asked := len(b.registry.Requests())
				for _, host := range []string{indexHost, filesHost} {
					for _, path := range privatePaths(eco) {
						a := b.do(sandboxA, http.MethodGet, "https://"+host+path)
						if a.StatusCode == 200 && (replies != nil || strings.Contains(a.body, "99.0.0") || strings.Contains(a.body, "v1.9.0")) {
							t.Errorf("%s%s: %s", host, path, status(a))
						}
					}
				}
				body := `{"@corp/lib":["1.0.0"],"corp.example/lib":["v1.0.0"]}`
				for _, path := range []string{"/-/npm/v1/security/advisories/bulk", "/-/npm/v1/security/audits/quick", "/@corp%2flib"} {
					b.raw(indexHost, "POST "+path+" HTTP/1.1\r\nHost: "+indexHost+"\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
				}
				own := 0
				for _, r := range b.registry.Requests()[asked:] {
					if r.Host == indexHost {
						t.Errorf("the public registry was asked for %s", r.Path)
					}
					own++
				}
				if own == 0 {
					t.Error("INCONCLUSIVE: not even its own registry was asked")
				}
				if served := b.door.Served(); (len(served) > 0) != (replies == nil) {
					t.Errorf("served %+v", served)
				}
			})
		}
	}
	b := newConfusedBench(t) // positive control: what nobody owns is had of the public one
	for _, path := range []string{"/@corp/lib/-/lib-99.0.0.tgz", "/go/corp.example/lib/@v/v1.9.0.zip", "/go" + logPath + "lookup/corp.example/lib@v1.9.0"} {
		if a := b.do(sandboxA, http.MethodGet, "https://"+indexHost+path); a.StatusCode != 200 {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	if b.requestsTo(indexHost) == 0 {
		t.Error("the public registry was not asked")
	}
}

// TestNamesAboveAFriend: a resolver that knows an import and not its module
// tries every beginning of it; those of a module that is there don't use up the
// quota of names, and names below it do.
func TestNamesAboveAFriend(t *testing.T) {
	var modules []golangtest.Module
	for i := range 10 {
		modules = append(modules, golangtest.New(t, "host"+strconv.Itoa(i)+".example/org/deep/repo", "v1.0.0"))
	}
	b, _ := newGoBench(t, modules...)
	b.cfg.Limits.RefusedNames = 8
	b.restart()
	for _, m := range modules { // 30 beginnings that lead to nothing
		for name := m.Path; strings.Contains(name, "."); name = name[:max(0, strings.LastIndexByte(name, '/'))] {
			want := http.StatusNotFound
			if name == m.Path {
				want = http.StatusOK
			}
			if a := b.get("/" + name + "/@v/list"); a.StatusCode != want {
				t.Fatalf("%s: %s", name, status(a))
			}
		}
	}
	refused := 0
	for i := range 20 {
		if a := b.get("/" + modules[0].Path + "/secret" + strconv.Itoa(i) + "/@v/list"); a.StatusCode == http.StatusForbidden && strings.Contains(a.body, "no new names") {
			refused++
		}
	}
	if refused != 20-8 {
		t.Errorf("%d of 20 names below a module were refused", refused)
	}
}
