package homes

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnlyTheFileSystemOfHomesIsAsked: a process of any user may have something open on a file system that does not
// answer. The control is open through a mount of a home.
func TestOnlyTheFileSystemOfHomesIsAsked(t *testing.T) {
	process := t.TempDir()
	for _, dir := range []string{"fd", "fdinfo"} {
		if err := os.Mkdir(filepath.Join(process, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for descriptor, mount := range map[string]string{"3": "41", "4": "42"} {
		for name, text := range map[string]string{"fd": "", "fdinfo": "pos:\t0\nflags:\t0100000\nmnt_id:\t" + mount + "\n"} {
			if err := os.WriteFile(filepath.Join(process, name, descriptor), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var asked []string
	u := unlinked{mounts: map[string]string{"42": "0/desk"}, counted: map[[2]uint64]bool{}, found: map[string]open{}}
	u.stat = func(path string, st *unix.Stat_t) error {
		asked = append(asked, filepath.Base(path))
		*st = unix.Stat_t{Mode: unix.S_IFREG, Ino: 7, Blocks: 2}
		return nil
	}
	u.look(process)
	if len(asked) != 1 || asked[0] != "4" || u.found["0/desk"] != (open{1, 2 * block}) {
		t.Errorf("the descriptors %v are asked about, and found is %v", asked, u.found)
	}
}
