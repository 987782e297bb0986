package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
)

// It resolves what the run's commands asked for, in their words.
func TestInstallsOf(t *testing.T) {
	t.Parallel()
	got := installsOf([]api.SuggestedRoot{
		{Ecosystem: "python", Name: "requests", Asked: "requests[socks]>=2", Version: "2.32.3"},
		{Ecosystem: "node", Name: "express"},
		{Ecosystem: "go", Name: "x.example/m"},
		{Ecosystem: "python", Name: "idna", Version: "3.7"},
		{Ecosystem: "rust", Name: "serde"},
		{Ecosystem: "go", Name: "x.example/n", Asked: "x.example/n/cmd@v1.2.3"},
	})
	want := [][]string{
		{"pip", "install", "requests[socks]>=2", "idna==3.7"}, {"npm", "install", "express"}, {"go", "install", "x.example/m@latest", "x.example/n/cmd@v1.2.3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A release of which a plan says nothing may go through: it keeps nobody from a suggestion, and is told. A refused one does.
func TestWhatWasNotWeighedIsTold(t *testing.T) {
	t.Parallel()
	release := func(name, effect, would string) api.PlanRelease {
		return api.PlanRelease{Ecosystem: "node", Name: name, Version: "1.0.0", Effect: effect, Would: would, Reason: "why"}
	}
	refused, unweighed := refusedIn(api.Plan{Releases: []api.PlanRelease{
		release("had", "allow", ""), release("asks", "hold", ""), release("no", "deny", ""), release("watched", "allow", "deny"),
		release("a", "error", ""), release("b", "error", ""), release("c", "error", ""), release("d", "error", ""),
	}})
	if diff := cmp.Diff([]string{"node no 1.0.0: why", "node watched 1.0.0: why"}, refused); diff != "" {
		t.Error(diff)
	}
	var out strings.Builder
	sayOpen(&out, unweighed)
	if text := out.String(); len(unweighed) != 4 || strings.Count(text, "not known: node ") != 3 || !strings.Contains(text, "1 more") || !strings.Contains(text, "may still fail") {
		t.Errorf("%d: %s", len(unweighed), text)
	}
	out.Reset()
	if sayOpen(&out, nil); out.Len() > 0 {
		t.Errorf("of a trial that leaves nothing open: %s", out.String())
	}
}

// A trial that installs nothing shows nothing, and that is told with the suggestion.
func TestASuggestionWithoutATrialIsToldAsOne(t *testing.T) {
	t.Parallel()
	if tried := tryUnder(t.Context(), nil, "r1", api.Suggestion{}, nil); len(tried.open) != 1 || tried.runs != nil || tried.still != nil {
		t.Errorf("%+v", tried)
	}
}

// TestInstallsOfAShellAreAllTried: of what a shell was told all installs are tried, each where it starts; a command that has none is
// refused with the installs that there are.
func TestInstallsOfAShellAreAllTried(t *testing.T) {
	t.Parallel()
	request := api.CreateSandbox{Workdir: "/w", Mounts: []api.Mount{{Source: "/x", Destination: "/w"}}}
	found, rest, err := installsIn([]string{"bash", "-c", "uv sync && .venv/bin/pip install -r a.txt; cd web && npm ci && make test"}, request)
	var got []string
	for _, i := range found {
		got = append(got, i.request.Workdir+": "+strings.Join(i.argv, " "))
	}
	if diff := cmp.Diff([]string{"/w: uv sync", "/w: pip install -r a.txt", "/w/web: npm ci"}, got); diff != "" || err != nil || rest != nil {
		t.Errorf("%v%s, %v", err, diff, rest)
	}
	if found, _, err := installsIn([]string{"npm", "ci"}, request); err != nil || len(found) != 1 || found[0].request.Workdir != "/w" {
		t.Errorf("%+v, %v", found, err)
	}
	for _, argv := range [][]string{{"bash", "-c", "make test"}, {"make"}, {"npm", "ci", "x"}} {
		if found, _, err := installsIn(argv, request); err == nil || found != nil {
			t.Errorf("%q: %+v", argv, found)
		}
	}
}

// TestInstallsThatAreNotTriedAreNamed, with a command that tries them: of a text with more than eight nobody is left to think that all
// were tried. The control is one with eight.
func TestInstallsThatAreNotTriedAreNamed(t *testing.T) {
	t.Parallel()
	f := suggestFlags{run: "r1", mounts: []string{".:/w"}}
	text := strings.Repeat("pip install a; ", 8)
	for name, c := range map[string]struct{ text, want string }{
		"eight":                {text, ""},
		"nine":                 {text + "cd web && npm ci", "npm ci: not tried, since one suggestion tries 8 installs; try it by itself: cofferdam policy suggest --run r1 --mount .:/w --workdir /w/web -- npm ci"},
		"ten":                  {text + "uv sync; npm ci", "uv sync and 1 more behind it: not tried, since one suggestion tries 8 installs; try each by itself: cofferdam policy suggest --run r1 --mount .:/w --workdir /w -- uv sync"},
		"words for a shell":    {text + `pip install 'it'"'"'s' '$HOME;id'`, `pip install 'it'\''s' '$HOME;id': not tried, since one suggestion tries 8 installs; try it by itself: cofferdam policy suggest --run r1 --mount .:/w --workdir /w -- pip install 'it'\''s' '$HOME;id'`},
		"words for a terminal": {text + "pip install 'a\x1bb'", "pip install 'a\x1bb': not tried, since one suggestion tries 8 installs; try it by itself"},
		"words without a face": {text + "pip install 'a\u200bb'", "pip install 'a\u200bb': not tried, since one suggestion tries 8 installs; try it by itself"},
	} {
		of, rest, err := installsIn([]string{"bash", "-c", c.text}, api.CreateSandbox{Workdir: "/w", Mounts: []api.Mount{{Source: "/x", Destination: "/w"}}})
		if got := f.untried(rest); err != nil || len(of) != 8 || got != c.want {
			t.Errorf("%s: %d, %v: %q", name, len(of), err, got)
		}
	}
}

// TestNoLineHasOtherWordsThanItsRun: the end of a run names its own install only where a terminal can be shown it as it is.
func TestNoLineHasOtherWordsThanItsRun(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]int{"a.txt": 7, "it's $x.txt": 7, "a\x1bb": 0, "a\u200bb": 0, "a\u202eb": 0, "a\xffb": 0} {
		r := runner{
			argv: []string{"pip", "install", "-r", word}, flags: runFlags{mounts: []string{".:/w:rw"}},
			request: api.CreateSandbox{Workdir: "/w", Mounts: []api.Mount{{Source: "/x", Destination: "/w"}}},
		}
		if words := r.installWords(); len(words) != want {
			t.Errorf("%q: %q", word, words)
		}
	}
}
