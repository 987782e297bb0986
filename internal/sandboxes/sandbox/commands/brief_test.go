package commands

import (
	"fmt"
	"strings"
	"testing"
)

// TestOfALongCommandLittleIsKept: a command that runs is in the list for as long as it likes, and takes little there
// whatever its words and variables are. The control is a short one, of which all is kept.
func TestOfALongCommandLittleIsKept(t *testing.T) {
	many := map[string]string{}
	for i := range 900 {
		many[fmt.Sprint("V", i)] = strings.Repeat("x", 220)
	}
	for name, c := range map[string]struct {
		argv     []string
		env      map[string]string
		argc     int
		withEnvs bool
	}{
		"short":          {[]string{"sh", "-c", "true"}, map[string]string{"A": "b"}, 3, true},
		"long variables": {[]string{"sh", "-c", "true"}, many, 3, false},
		"long words":     {[]string{"sh", "-c", strings.Repeat("x", 100_000)}, map[string]string{"A": "b"}, 1, false},
		"a long program": {[]string{strings.Repeat("x", 100_000)}, nil, 1, false},
	} {
		argv, env := briefCommand(c.argv, c.env)
		size := 0
		for _, word := range argv {
			size += len(word)
		}
		for name, value := range env {
			size += len(name) + len(value)
		}
		if size > maxListed || len(argv) != c.argc || c.withEnvs != (env != nil) {
			t.Errorf("%s: %d words and %d variables of %d bytes are kept", name, len(argv), len(env), size)
		}
	}
}

// TestAWorkingDirectoryIsAPath that Linux would take: it is in the list as well.
func TestAWorkingDirectoryIsAPath(t *testing.T) {
	for length, taken := range map[int]bool{1: true, MaxDir: true, MaxDir + 1: false, 200_000: false} {
		dir := "/" + strings.Repeat("./", length)[:length-1]
		if err := checkCommand(Command{Argv: []string{"true"}, Dir: dir}); (err == nil) != taken {
			t.Errorf("a directory of %d bytes: %v", len(dir), err)
		}
	}
}
