package installer_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// TestWordsAreWords: whatever a word has in it, the shell hands it on as one.
func TestWordsAreWords(t *testing.T) {
	for _, word := range []string{"a b", "$(touch x)", "`id`", "it's", "a;b", "*", "~", "", "\n", "\"", "\\", "a\tb", "-n", "ä"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s|' "+installer.Quote(word)+" end").Output()
		if err != nil || string(out) != word+"|end|" {
			t.Errorf("%q came out as %q (%v)", word, out, err)
		}
	}
}

// TestTheCopy runs the prelude itself: files are copied, large ones and what
// clients make are not, and the frames come out.
func TestTheCopy(t *testing.T) {
	top := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	must := func(words ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir = top
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
	}
	must("sh", "-c", `mkdir -p "in side/node_modules/x" .git && echo one >"in side/requirements.txt" && echo no >"in side/node_modules/x/requirements.txt" && echo no >.git/x && truncate -s 17M large && ln -s /etc/passwd link`)
	argv := installer.Project{Top: top, Here: "in side"}.Script(
		"echo said", "ls -A .. >&2", `[ -e node_modules ] && exit 3; [ -e ../large ] && exit 4; [ -e ../.git ] && exit 5; [ -L ../link ] || exit 6`,
		"echo two >>requirements.txt", "emit requirements.txt requirements.txt", "emit uv.lock none")
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	docs, err := installer.ReadOutput(out, []string{"requirements.txt", "uv.lock"})
	if err != nil || len(docs) != 1 || string(docs["requirements.txt"]) != "one\ntwo\n" || !strings.HasPrefix(said.String(), "said\n") {
		t.Errorf("documents %q, %v; said %q", docs, err, said.String())
	}
	must("sh", "-c", `[ "$(cat "in side/requirements.txt")" = one ]`)
}
