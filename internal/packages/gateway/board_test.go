package gateway_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// deed is what one run does, which another would like to know.
type deed struct {
	what string
	does func(b *bench)
	// tells is of what another run's requests tell by how soon they are answered: the
	// registry is not asked again. Empty: nothing.
	tells string
}

func deeds() []deed {
	asks := func(paths ...string) func(*bench) {
		return func(b *bench) {
			for _, path := range paths {
				b.get(path)
			}
		}
	}
	many := make([]string, 20)
	for i := range many {
		many[i] = fmt.Sprintf("/simple/message-%d/", i)
	}
	return []deed{
		{"a name that leads to nothing", asks("/simple/nothing/"), ""},
		{"a file that leads to nothing", asks("/p/nothing-1.0-py3-none-any.whl"), ""},
		{"more names than it may", asks(many...), ""},
		{"a name at which the registry fails", asks("/simple/failing/", "/simple/failing/"), ""},
		{"a page that it may not have", func(b *bench) {
			b.door.apart = map[string]string{sandboxA: "sandbox " + sandboxA}
			b.get("/simple/foo/")
		}, ""},
		{"words where none belong", func(b *bench) {
			b.get("/simple/foo/?note=message")
			b.do(sandboxA, http.MethodHead, "https://"+indexHost+"/simple/message")
			b.do(sandboxA, http.MethodDelete, "https://"+indexHost+"/simple/foo/")
		}, ""},
		// One thing is left: whether a page or a file that both may have was asked for.
		{"a release that is none", asks("/p/foo-9.0-py3-none-any.whl"), indexHost + "/simple/foo/"},
		{"a page that both may have", asks("/simple/foo/"), indexHost + "/simple/foo/"},
		{"a file that both may have", asks("/simple/foo/", "/p/foo-1.0-py3-none-any.whl"), indexHost + "/simple/foo/ " + filesHost + "/p/foo-1.0-py3-none-any.whl"},
	}
}

// look is all that a run sees of its own requests, and what of them went to the registry.
func (b *bench) look() (answers []string, asked map[string]int) {
	b.t.Helper()
	routes := []string{
		indexHost + "/simple/nothing/", indexHost + "/simple/message-0/", indexHost + "/simple/message-19/", indexHost + "/simple/failing/",
		indexHost + "/simple/foo/", filesHost + "/p/nothing-1.0-py3-none-any.whl", filesHost + "/p/foo-9.0-py3-none-any.whl",
		filesHost + "/p/foo-1.0-py3-none-any.whl", indexHost + "/simple/", indexHost + "/simple/message",
	}
	ids := regexp.MustCompile(`\bf-[0-9]+\b`) // of this test's door, which counts
	asked = map[string]int{}
	for _, route := range routes {
		before := b.registry.Count(route)
		a := b.do(sandboxB, http.MethodGet, "https://"+route)
		asked[route] = b.registry.Count(route) - before
		a.Header.Del("Date")
		a.Header.Del("Etag")           // see TestTagsTellNothing
		a.Header.Del("Content-Length") // of the body, which has an id
		answers = append(answers, ids.ReplaceAllString(fmt.Sprintf("%s: %s %v %s", route, a.Status, a.Header, a.body), "ID"))
	}
	return answers, asked
}

// TestWhatOneRunLearnsOfAnother: after whatever another run did, a run's answers are to the
// byte what they are where nobody did anything. How soon they come, of which the registry's
// part is counted, tells one thing: whether a page or a file that both may have was fetched.
func TestWhatOneRunLearnsOfAnother(t *testing.T) {
	for _, d := range deeds() {
		t.Run(d.what, func(t *testing.T) {
			b := newBench(t, func(c *gateway.Config) { c.Limits.RefusedNames = 10 })
			b.publish(pypitest.Wheel(t, "foo", "1.0"))
			b.page("failing", liar.Status(http.StatusInternalServerError))
			want, alone := b.look()
			b.cfg.CacheDir = t.TempDir() // of a gateway that knows of nothing
			b.restart()
			d.does(b)
			answers, asked := b.look()
			if diff := cmp.Diff(want, answers); diff != "" {
				t.Errorf("ESCAPED: another run's answers tell of it:\n%s", diff)
			}
			var told []string
			for route, n := range alone {
				if asked[route] != n {
					told = append(told, route)
				}
			}
			for _, route := range told {
				if !strings.Contains(d.tells, route) {
					t.Errorf("ESCAPED: the registry is asked %d times for %s, and %d where nobody did anything", asked[route], route, alone[route])
				}
			}
			if len(told) != len(strings.Fields(d.tells)) {
				t.Errorf("the threat model says that %q can be told, and it is %v", d.tells, told)
			}
		})
	}
}

// TestTagsTellNothing: a page's tag is not to be had from what it is made of, which has when
// its files were first seen here.
func TestTagsTellNothing(t *testing.T) {
	b := newBench(t, nil)
	b.publish(pypitest.Wheel(t, "foo", "1.0"))
	before := b.get("/simple/foo/").Header.Get("Etag")
	if again := b.get("/simple/foo/").Header.Get("Etag"); before == "" || again != before {
		t.Errorf("INCONCLUSIVE: the page has the tags %q and %q", before, again)
	}
	b.restart() // with all that it has kept
	if after := b.get("/simple/foo/").Header.Get("Etag"); after == before {
		t.Errorf("whoever knows what a page is made of knows its tag: %q", after)
	}
}
