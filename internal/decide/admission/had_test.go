package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// sdist is a file beside a release's wheel.
func sdist(name, version string) door.File {
	f := wheel(name, version)
	f.Name, f.Kind, f.Digest = name+"-"+version+".tar.gz", policy.KindSdist, "sha256:"+hexOf("source of "+name+version)
	return f
}

// TestWhatAResolverReadWasHad: a client that locks and installs nothing gets metadata, and that a
// page had no source distributions of it is no refusal. A release above what it was told is
// withheld, and of what it was told nothing it is refused.
func TestWhatAResolverReadWasHad(t *testing.T) {
	const wheels = "packages: { default: allow, sdist: deny }"
	const capped = "allowed_packages: { python: [ { name: rich, max_version: '1.x' } ] }"
	for what, c := range map[string]struct {
		document, command string
		shown             func(*door.Showing) // nil: nothing is
		blocked           bool                // a file of it, after that
		withheld, refused string
	}{
		"told, and only files are left out":  {wheels, "uv lock", func(*door.Showing) {}, false, "", ""},
		"not told":                           {wheels, "uv lock", nil, false, "", "rich 2.0"},
		"told what the client reads itself":  {wheels, "uv lock", func(s *door.Showing) { s.Kind = door.ShownRelayed }, false, "", "rich 2.0"},
		"told, under a cap":                  {capped, "uv lock", func(*door.Showing) {}, false, "rich 2.0", ""},
		"not told, under a cap":              {capped, "uv lock", nil, false, "rich 2.0", "rich 2.0"},
		"told, and its file was refused":     {wheels, "uv lock", func(*door.Showing) {}, true, "", "rich 1.0"},
		"told another than a command wanted": {capped, "uv pip install rich==2.0", func(*door.Showing) {}, false, "rich 2.0", ""},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGrove(t, c.document, Limits{})
			_, err := g.Command(t.Context(), "sb1", "c1", strings.Fields(c.command))
			must(t, err)
			var files []door.File
			for _, version := range []string{"1.0", "2.0"} {
				files = append(files, wheel("rich", version), sdist("rich", version))
			}
			_, err = g.Index(t.Context(), indexOf("rich", "d", files...))
			must(t, err)
			if c.shown != nil {
				s := shows("1.0", "a")
				c.shown(&s)
				must(t, g.Show(t.Context(), s))
			}
			if c.blocked {
				ask := judging("rich", "1.0")
				ask.File = sdist("rich", "1.0")
				_, err = g.Judge(t.Context(), ask)
				must(t, err)
			}
			sum, err := g.Summary(t.Context(), "run1")
			must(t, err)
			if diff := cmp.Diff([]string{c.withheld, c.refused}, []string{lineOf(sum.Withheld), lineOf(sum.Refused)}); diff != "" {
				t.Errorf("withheld and refused (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsHadAfterwardsIsNotRefused: a summary is of what a run did not get in the end.
// Packages that it got before, and an alarm, stay refused.
func TestWhatIsHadAfterwardsIsNotRefused(t *testing.T) {
	for what, c := range map[string]struct {
		before, after func(*testing.T, *grove)
		refused       string
	}{
		"a page that failed, and a file":        {failsAt("", ""), serves("dep", "1.0.0"), ""},
		"a page that failed":                    {failsAt("", ""), nil, "dep"},
		"a file that failed, and it":            {failsAt("1.0.0", "dep-1.0.0.tgz"), serves("dep", "1.0.0"), ""},
		"a file that failed twice, and it":      {failedTwice, serves("dep", "1.0.0"), ""},
		"a file that failed, and another":       {failsAt("1.0.0", "dep-1.0.0.tgz"), serves("dep", "2.0.0"), "dep 1.0.0"},
		"a file that failed, and its metadata":  {failsAt("1.0.0", "dep-1.0.0.tgz"), tells("dep", "1.0.0"), "dep 1.0.0"},
		"a file, which failed afterwards":       {serves("dep", "1.0.0"), failsAt("1.0.0", "dep-1.0.0.tgz"), "dep 1.0.0"},
		"a file that was refused, and it":       {refusedOnce, allowed, ""},
		"a page of nothing, and all of it":      {func(t *testing.T, g *grove) { t.Helper(); g.page(t, "dep", nil, "1.0.0") }, pageAllowed, ""},
		"all of a page, and then nothing of it": {pageAllowed, pageRefused, "dep"},
		"an alarm, and a file":                  {alarmed, serves("a", "1.2.0"), "a 1.2.0"},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGrove(t, "packages: { default: allow }", Limits{})
			must(t, g.SandboxStarted(t.Context(), "sb1"))
			if strings.Contains(what, "refused") || strings.HasPrefix(what, "a page of nothing") {
				g.law(t, "allowed_packages: { node: [ { name: other } ] }")
			}
			c.before(t, g)
			if c.after != nil {
				c.after(t, g)
			}
			must(t, g.SandboxEnded(t.Context(), "sb1", "the end"))
			sum, err := g.Summary(t.Context(), "run1")
			must(t, err)
			if got := lineOf(sum.Refused); got != c.refused {
				t.Errorf("refused %q, want %q: %+v", got, c.refused, sum.Refused)
			}
		})
	}
}

// law registers the sandbox anew under another policy, as a daemon does that is started
// again.
func (g *grove) law(tb testing.TB, document string) {
	tb.Helper()
	g.Unregister("sb1")
	g.policy = parse(tb, document)
	must(tb, g.Register(g.run()))
}

func failsAt(version, file string) func(*testing.T, *grove) {
	return func(t *testing.T, g *grove) {
		t.Helper()
		_, err := g.Failed(t.Context(), door.Failure{Sandbox: "sb1", Package: node("dep", version), File: file, ResolvedBy: policy.ByIntegrity, Reason: "it broke"})
		must(t, err)
	}
}

func serves(name, version string) func(*testing.T, *grove) {
	return func(t *testing.T, g *grove) {
		t.Helper()
		g.servedAs(t, node(name, version), "of "+version)
	}
}

func tells(name, version string) func(*testing.T, *grove) {
	return func(t *testing.T, g *grove) {
		t.Helper()
		must(t, g.Show(t.Context(), door.Showing{Sandbox: "sb1", Package: node(name, version), Kind: door.ShownMetadata, File: "m", SHA256: hexOf("m")}))
	}
}

func failedTwice(t *testing.T, g *grove) { // the second is on record at the end
	t.Helper()
	failsAt("1.0.0", "dep-1.0.0.tgz")(t, g)
	failsAt("1.0.0", "dep-1.0.0.tgz")(t, g)
}

func refusedOnce(t *testing.T, g *grove) {
	t.Helper()
	g.expect(t, false, node("dep", "1.0.0"))
}

func allowed(t *testing.T, g *grove) {
	t.Helper()
	g.law(t, "packages: { default: allow }")
	g.servedAs(t, node("dep", "1.0.0"), "of 1.0.0")
}

func pageAllowed(t *testing.T, g *grove) {
	t.Helper()
	g.law(t, "packages: { default: allow }")
	g.page(t, "dep", nil, "1.0.0")
}

func pageRefused(t *testing.T, g *grove) {
	t.Helper()
	g.law(t, "allowed_packages: { node: [ { name: other } ] }")
	g.page(t, "dep", nil, "1.0.0")
}

// alarmed asks for another file than the one that a lockfile pins.
func alarmed(t *testing.T, g *grove) {
	t.Helper()
	g.Unregister("sb1")
	r := g.run()
	r.Lock = locked(t, false)
	must(t, g.Register(r))
	if d := g.fetch(t, node("a", "1.2.0")); !d.Alarm {
		t.Fatalf("%+v", d)
	}
	g.law(t, "packages: { default: allow }")
}

// TestAnUpstreamsAnswerIsNoRefusal: the go command asks for each path above a package and
// below a module that it finds. A file that an upstream does not have there, or give, is told
// neither as refused nor as missing; of a module that was wanted it is missing, and what
// could not be verified, or the policy refuses, is refused.
func TestAnUpstreamsAnswerIsNoRefusal(t *testing.T) {
	g := newGrove(t, "packages: { default: allow }\nblocked_packages: { go: [ { name: corp.example/a/b/bad } ] }", Limits{})
	say := func(path, version, file, rule string) {
		_, err := g.Failed(t.Context(), door.Failure{
			Sandbox: "sb1", Package: module(path, version), File: file, ResolvedBy: policy.ByIntegrity, Rule: rule, Reason: "no", Metadata: file != "",
		})
		must(t, err)
	}
	for i, path := range []string{"corp.example", "corp.example/a", "corp.example/a/b/cmd", "corp.example/a/b/cmd/tool"} {
		rule := []string{door.RuleMissing, door.RuleDeclined}[i%2]
		say(path, "", "", rule)
		say(path, "v1.0.0", "v1.0.0.info", rule)
	}
	found := module("corp.example/a/b", "v1.0.0")
	must(t, g.Show(t.Context(), door.Showing{Sandbox: "sb1", Package: found, Kind: door.ShownMetadata, File: "v1.0.0.mod", SHA256: hexOf("m")}))
	if sum, err := g.Summary(t.Context(), "run1"); err != nil || lineOf(sum.Missing)+lineOf(sum.Refused) != "" {
		t.Errorf("before anything is served: %+v, %v", sum, err)
	}
	g.servedAs(t, found, "zip")
	say("corp.example/gone", "", "", door.RuleDeclined)
	say("corp.example/a/lies", "v1.0.0", "v1.0.0.mod", "")
	say("corp.example/a/b/lies", "v1.0.0", "v1.0.0.mod", "")
	say("corp.example/a", "v1.1.0", "v1.1.0.mod", "") // of a path above others, too
	bad := door.FileAsk{Sandbox: "sb1", Package: module("corp.example/a/b/bad", "v1.0.0"), File: door.File{Name: "v1.0.0.info", Version: "v1.0.0", Kind: policy.KindMetadata}}
	_, err := g.Judge(t.Context(), door.JudgeAsk{FileAsk: bad})
	must(t, err)
	sum, err := g.Summary(t.Context(), "run1")
	must(t, err)
	if got, want := lineOf(sum.Missing), "corp.example/gone"; got != want {
		t.Errorf("missing: %s, want %s", got, want)
	}
	if got, want := lineOf(sum.Refused), "corp.example/a v1.1.0, corp.example/a/b/bad v1.0.0, corp.example/a/b/lies v1.0.0, corp.example/a/lies v1.0.0"; got != want {
		t.Errorf("refused: %s, want %s", got, want)
	}
	list, err := g.Refusals(t.Context(), "sb1", "", 0)
	must(t, err)
	var why []string
	for _, r := range list {
		why = append(why, fmt.Sprintf("%s %s", r.Package.Name, r.Package.Version))
	}
	slices.Sort(why)
	if got, want := strings.Join(why, ", "), "corp.example/a v1.1.0, corp.example/a/b/bad v1.0.0, corp.example/a/b/lies v1.0.0, corp.example/a/lies v1.0.0, corp.example/gone "; got != want {
		t.Errorf("why: %s, want %s", got, want)
	}
}
