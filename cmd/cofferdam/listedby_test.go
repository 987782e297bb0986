package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestAMissingThingIsToldWithItsList: an error about a name that does not exist says which command lists those that do,
// once in a line. The control are errors about something else.
func TestAMissingThingIsToldWithItsList(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		`there is no sandbox "sb0"`:                                      "; cofferdam ps lists the sandboxes",
		`there is no sandbox "a \"quoted\" one" on record`:               "; cofferdam ps lists the sandboxes",
		`there is no sandbox sb-1 any more`:                              "; cofferdam ps lists the sandboxes",
		`there is no request "ap-nobody"`:                                "; cofferdam approvals list --all lists the requests",
		`there is no request "ap-nobody"; none of the 2 was answered`:    "; cofferdam approvals list --all lists the requests",
		`there is no policy named "none"`:                                "; cofferdam policy list lists the policies",
		`there is no run "r" on record`:                                  "; cofferdam audit list --kind sandbox lists the runs",
		`there is no run and no sandbox "nosuch", and none is on record`: "; cofferdam audit list --kind sandbox lists the runs",
		`there is no snapshot "warm"`:                                    "; cofferdam snapshots list lists the snapshots",
		`there is no home "desk"`:                                        "; cofferdam home list lists the homes",
		`there is no token "ci"`:                                         "; cofferdam token list lists the tokens",
		`there is no token for this, because the server declined`:        "",
		`there is no template "x"; known are debian and host`:            "",
		`there is no run on record yet`:                                  "",
		`open the log: no such file`:                                     "",
		`there is no command "x" in the sandbox sb1; cofferdam logs --list ` + `sb1 shows its commands`: "",
	} {
		var out bytes.Buffer
		complain(&out, fault.New(fault.ErrNotFound, "%s", said))
		if got := out.String(); got != "cofferdam: "+said+want+"\n" {
			t.Errorf("%q, not with %q", got, want)
		}
	}
	var out bytes.Buffer
	complain(&out, errors.Join(errors.New(`there is no token "a"`), errors.New("that is all"), errors.New(`there is no home "b"`)))
	if want := "cofferdam: there is no token \"a\"; cofferdam token list lists the tokens\nthat is all\nthere is no home \"b\"; cofferdam home list lists the homes\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}

// TestListsOfMissingThingsExist: each is a command of the program, with the flags that it names.
func TestListsOfMissingThingsExist(t *testing.T) {
	t.Parallel()
	for noun, list := range listsOf() {
		cmd, rest, err := newRoot().Find(strings.Fields(list.command))
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || cmd.HasSubCommands() || len(cmd.Flags().Args()) > 0 {
			t.Errorf("%s: %q is no command: %v", noun, list.command, err)
		}
	}
}

// unlisted are the things that a person names to no command, and those whose error names the ones that exist.
var unlisted = map[string]string{
	"command": "cofferdam logs --list shows them, which its error says", "watcher": "of the E2B wire", "build": "of the E2B wire",
	"report": "its error names them", "template": "its error names them",
}

// TestEveryThingThatCanBeMissingHasItsList: whatever the daemon answers that it does not know.
func TestEveryThingThatCanBeMissingHasItsList(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	missing := regexp.MustCompile(`fault\.ErrNotFound, "there is no (\w+) (?:named )?%[.0-9]*[qs]`)
	err := filepath.WalkDir(filepath.Join("..", "..", "internal"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range missing.FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for noun := range found {
		if _, listed := listsOf()[noun]; !listed && unlisted[noun] == "" {
			t.Errorf("there can be no %s, and no command lists them", noun)
		}
	}
	for noun := range listsOf() {
		if !found[noun] {
			t.Errorf("nothing answers that there is no %s", noun)
		}
	}
}
