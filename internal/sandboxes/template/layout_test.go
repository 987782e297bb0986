package template

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// templatesPage is what the documentation promises of templates, as one line.
func templatesPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "templates.md"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(page)), " ")
}

// promised gives the words of a part of the page.
func promised(t *testing.T, page, pattern string) []string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("docs/templates.md has no %q any more", pattern)
	}
	return strings.Fields(found[1])
}

// TestLayoutsHaveWhatIsPromised: each thing that docs/templates.md names of a template comes with one of its packages, and each program
// is among those for which a run is told that this template has it.
func TestLayoutsHaveWhatIsPromised(t *testing.T) {
	t.Parallel()
	page := templatesPage(t)
	all := []string{NameDebian, NameDev, NameInterpreter}
	for _, c := range []struct {
		words     string // of the page
		pkg       string
		program   string // "": none
		templates []string
	}{
		{"ps ", "procps", "ps", all},
		{" less ", "less", "less", all},
		{" file ", "file", "file", all},
		{" zip ", "zip", "zip", all},
		{" unzip ", "unzip", "unzip", all},
		{" xz ", "xz-utils", "xz", all},
		{" patch ", "patch", "patch", all},
		{" jq ", "jq", "jq", all},
		{" rg ", "ripgrep", "rg", all},
		{" make ", "make", "make", all},
		{" nano ", "nano", "nano", all},
		{" curl ", "curl", "curl", all},
		{"git`", "git", "git", all},
		{"the time zones", "tzdata", "", all},
		{"these locales, all in UTF-8", "locales", "", all},
		{"python3, pip, venv", "python3", "python3", all},
		{"python3, pip, venv", "python3-pip", "pip", all},
		{"python3, pip, venv", "python3-venv", "", all},
		{"`debian` with gcc", "gcc", "gcc", []string{NameDev}},
		{"g++", "g++", "g++", []string{NameDev}},
		{"vim-tiny", "vim-tiny", "vi", []string{NameDev}},
		{"tmux", "tmux", "tmux", []string{NameDev}},
		{"the OpenSSH client", "openssh-client", "ssh", []string{NameDev}},
		{"man and the manual pages", "man-db", "man", []string{NameDev}},
		{"man and the manual pages", "manpages", "", []string{NameDev}},
		{"`debian` with R", "r-base-core", "Rscript", []string{NameInterpreter}},
		{"fonts for Chinese, Japanese, Korean and emoji", "fonts-wqy-microhei", "", []string{NameInterpreter}},
		{"fonts for Chinese, Japanese, Korean and emoji", "fonts-noto-color-emoji", "", []string{NameInterpreter}},
		{"draws emoji in one colour", "fonts-symbola", "", []string{NameInterpreter}},
	} {
		if !strings.Contains(page, c.words) {
			t.Errorf("docs/templates.md does not say %q", c.words)
		}
		for _, name := range c.templates {
			l, is := layoutOf(name)
			if !is || !slices.Contains(l.packages, c.pkg) {
				t.Errorf("%s has no %s", name, c.pkg)
			}
			if c.program != "" && !slices.Contains(l.programs, c.program) {
				t.Errorf("%s does not tell of %s", name, c.program)
			}
		}
	}
	for _, word := range promised(t, page, "Also there: `([^`]*)`") { // one that the page gains needs a row here
		if l, _ := layoutOf(NameDebian); !slices.Contains(l.programs, word) {
			t.Errorf("debian does not tell of %s", word)
		}
	}
	if l, _ := layoutOf(NameDev); !l.manuals {
		t.Error("dev has no manual pages")
	}
}

// TestTemplatesHaveTheLocalesThatArePromised, no more and no fewer.
func TestTemplatesHaveTheLocalesThatArePromised(t *testing.T) {
	t.Parallel()
	want := promised(t, templatesPage(t), "all in UTF-8: `([^`]*)`")
	got := promised(t, strings.Join(strings.Fields(strings.ReplaceAll(string(customizeScript), "\\\n", " ")), " "), `step locales .*?for l in ([^;]*);`)
	if slices.Sort(want); !slices.Equal(want, slices.Sorted(slices.Values(got))) {
		t.Errorf("made are %q, and %q are promised", got, want)
	}
}

// TestTheInterpreterHasWhatIsPromised of Python: a wheel for each Python and machine that it is built for.
func TestTheInterpreterHasWhatIsPromised(t *testing.T) {
	t.Parallel()
	if l, _ := layoutOf(NameInterpreter); !l.wheels {
		t.Error("code-interpreter has no wheels")
	}
	page := templatesPage(t)
	for _, name := range []string{"ipykernel", "numpy", "pandas", "matplotlib"} {
		if !strings.Contains(page, name) {
			t.Errorf("docs/templates.md does not name %s", name)
		}
		for _, python := range pythons() {
			for _, machine := range []string{"amd64", "arm64"} {
				row := regexp.MustCompile(`(?m)^(?:\*|` + regexp.QuoteMeta(python) + `) +(?:\*|` + machine + `) +` + name + ` `)
				if !row.MatchString(wheelsList) {
					t.Errorf("Python %s has no %s on %s", python, name, machine)
				}
			}
		}
	}
}

// TestTheToolsAreThoseThatArePromised, on each machine for which tools are pinned, and in each template that has Debian's.
func TestTheToolsAreThoseThatArePromised(t *testing.T) {
	t.Parallel()
	want := promised(t, templatesPage(t), "with links in `/usr/local/bin`: `([^`]*)`")
	slices.Sort(want)
	for _, arch := range []string{"amd64", "arm64"} {
		var got []string
		for _, p := range pinned(arch) {
			got = slices.AppendSeq(got, maps.Keys(p.links))
			for _, program := range p.programs {
				if filepath.Dir(program) == "usr/local/bin" {
					got = append(got, filepath.Base(program))
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s has %q, and %q are promised", arch, got, want)
		}
	}
	for _, name := range []string{NameDebian, NameDev, NameInterpreter} {
		if l, _ := layoutOf(name); !l.tools {
			t.Errorf("%s has no tools", name)
		}
	}
}
