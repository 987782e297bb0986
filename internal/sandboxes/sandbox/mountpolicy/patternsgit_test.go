package mountpolicy

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPatternsHideNoLessThanGit compares random ignore files with git's own reading of them: each path that git ignores is hidden.
func TestPatternsHideNoLessThanGit(t *testing.T) {
	t.Parallel()
	texts := 400
	if os.Getenv("COFFERDAM_LONG") != "" {
		texts = 6_000
	}
	dir := t.TempDir()
	paths := makeTreeToIgnore(t, dir)
	var ignored, taken, refused, more int
	r := rand.New(rand.NewPCG(33, 114))
	for range texts {
		text := randomIgnoreFile(r)
		p, err := parsePatterns("file", []byte(text))
		if err != nil {
			refused++
			continue
		}
		byGit := askGitWhatIsIgnored(t, dir, text, paths)
		taken++
		shown := ""
		for _, name := range paths {
			hidden := hidesWithWay(p, strings.TrimSuffix(name, "/")) || strings.HasSuffix(name, "/") && hidesWithWay(p, name)
			switch {
			case byGit[strings.TrimSuffix(name, "/")] && !hidden:
				shown = name
			case byGit[strings.TrimSuffix(name, "/")]:
				ignored++
			case hidden:
				more++
			}
		}
		if shown != "" {
			t.Errorf("git ignores %q by %q, which does not hide it", shown, text)
		}
	}
	t.Logf("%d texts, %d refused: %d paths ignored and hidden, %d hidden alone", taken, refused, ignored, more)
	if taken < texts*3/4 || ignored < 10*texts || more > ignored {
		t.Errorf("%d of %d texts were read; %d paths ignored, %d hidden alone: the comparison says little", taken, texts, ignored, more)
	}
}

// makeTreeToIgnore makes directories, whose names end in a slash in the answer, and files.
func makeTreeToIgnore(t *testing.T, dir string) (paths []string) {
	t.Helper()
	names := []string{"a", "b", "ab", "a.c", ".a", " a", "[a", "\u00e9"}
	var fill func(at string, depth int)
	fill = func(at string, depth int) {
		for i, name := range names {
			name = filepath.Join(at, name)
			if depth < 2 && i%2 == 0 {
				if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
					t.Fatal(err)
				}
				paths = append(paths, name+"/")
				fill(name, depth+1)
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, name)
		}
	}
	fill("", 0)
	if out, err := gitIn(dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	return paths
}

// gitIn is git with no settings but its own.
func gitIn(dir string, args ...string) *exec.Cmd {
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_DIR="+filepath.Join(dir, ".git"), "HOME="+dir)
	return c
}

// askGitWhatIsIgnored tells which of the paths git ignores by a text.
func askGitWhatIsIgnored(t *testing.T, dir, text string, paths []string) map[string]bool {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := gitIn(dir, "check-ignore", "--no-index", "--stdin", "-z")
	c.Stdin = strings.NewReader(strings.ReplaceAll(strings.Join(paths, "\x00"), "/\x00", "\x00")) // it finds out itself which are directories
	out, err := c.Output()
	if err != nil && c.ProcessState.ExitCode() != 1 { // 1: none is
		t.Fatalf("git check-ignore: %v", err)
	}
	ignored := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		ignored[name] = true
	}
	return ignored
}

// randomIgnoreFile is some lines of what gitignore's syntax is made of.
func randomIgnoreFile(r *rand.Rand) string {
	parts := []string{"a", "a", "b", "ab", ".a", "a.c", "[a", "a b", "*", "*", "**", "***", "?", "/", "/", "/", "[ab]", "[!a]", `\a`, `\[`, ".", " ", "[[:alpha:]]", "[a-c]", "[^.]", "[+-9]", "[[:punct:]]", "[[:print:]]", "\u00e9", "[\u00e9]", "[", "\\/", "[^[:space:]]"}
	var out strings.Builder
	if r.IntN(20) == 0 {
		out.WriteString("\ufeff")
	}
	for range 1 + r.IntN(4) {
		switch r.IntN(12) {
		case 0:
			out.WriteString("#")
		case 1, 2, 3:
			out.WriteString("!")
		case 4:
			out.WriteString(" ")
		case 6:
			out.WriteString("/")
		case 5:
			out.WriteString("**/")
		}
		for range 1 + r.IntN(4) {
			out.WriteString(parts[r.IntN(len(parts))])
		}
		out.WriteString([]string{"\n", "\n", "\n", "\r\n", "/\n", "/**\n", "  \n"}[r.IntN(7)])
	}
	return out.String()
}
