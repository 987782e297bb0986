package template

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagesAreKeptForTheNextBuild, of any template, as they came and no others.
func TestPackagesAreKeptForTheNextBuild(t *testing.T) {
	s, tools := workshop(t)
	found := func(name string) string {
		t.Helper()
		if _, err := s.Build(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(tools, "DEBS"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(raw))
	}
	const deb = "bash_5.2_amd64.deb"
	if got := found(NameDebian); got != "" {
		t.Errorf("the first build finds %q", got)
	}
	if got := found(NameDebian); got != deb {
		t.Errorf("the second build finds %q", got)
	}
	if got := found(NameDev); got != deb {
		t.Errorf("another template's build finds %q", got)
	}
	for _, folder := range []string{".debs-debian", ".debs-dev"} {
		put(t, filepath.Join(s.dir, folder, deb), "b package", 0o600)
	}
	if got := found(NameDebian); got != "" {
		t.Errorf("damaged packages are used: %q", got)
	}
	put(t, filepath.Join(s.dir, ".debs-dev", "added_1_amd64.deb"), "nobody's", 0o600)
	if got := found(NameDebian); got != deb {
		t.Errorf("what is on no list is used: %q", got)
	}
}

// TestDebNames: as apt writes the files of packages.
func TestDebNames(t *testing.T) {
	t.Parallel()
	got := debNames([][]string{{"git-man", "1:2.39.5-0+deb12u3", "all"}})
	if len(got) != 1 || got[0] != "git-man_1%3a2.39.5-0+deb12u3_all.deb" {
		t.Errorf("%q", got)
	}
}

// TestTheLogOfABuild has the tools' output, and the steps with their time.
func TestTheLogOfABuild(t *testing.T) {
	s, _ := workshop(t)
	var first Progress
	if _, err := s.Build(t.Context(), NameDev, func(p Progress) {
		if first.Step == "" {
			first = p
		}
	}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(s.LogPath(NameDev))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"I: downloading packages with apt...\n", "s]   8% download: \n", "s] 100% done: "} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q is not in the log:\n%s", want, raw)
		}
	}
	if !strings.Contains(first.Detail, s.LogPath(NameDev)) {
		t.Errorf("the first step does not say where the log is: %+v", first)
	}
}

// TestWhoNamesNoTemplate gets debian where it is built.
func TestWhoNamesNoTemplate(t *testing.T) {
	s, _ := workshop(t)
	if got := s.Meant(NameAuto); got != NameHost {
		t.Errorf("before: %s", got)
	}
	if _, err := s.Build(t.Context(), NameDebian, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), NameAuto); err != nil || got.Name != NameDebian {
		t.Errorf("after: %+v %v", got, err)
	}
	if got := s.Meant(NameHost); got != NameHost {
		t.Errorf("a name stands for itself, and not for %s", got)
	}
}

// TestHaving: the tools of the registries, and what only the larger template has.
func TestHaving(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"npm": "debian dev code-interpreter", "uv": "debian dev code-interpreter", "python3": "debian dev code-interpreter", "gcc": "dev", "tmux": "dev", "rg": "debian dev code-interpreter", "no-such": "", "": "", "usr/local/bin/uv": "",
	} {
		if got := strings.Join(Having(program), " "); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}
