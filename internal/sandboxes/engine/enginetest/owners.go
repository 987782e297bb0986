package enginetest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// testRootsMapping: root's sandbox has the files of whoever owns what is mounted, and no third one's.
func testRootsMapping(t *testing.T, s *Subject) {
	t.Helper()
	if os.Geteuid() != 0 {
		return // only root may be shown what is others'
	}
	const owner, third = 1234, 4321
	shared := t.TempDir()
	for name, of := range map[string]int{"own": owner, "theirs": third, "root": 0} {
		path := filepath.Join(shared, name)
		if err := errors.Join(os.WriteFile(path, []byte("before"), 0o600), os.Chmod(path, 0o664), os.Chown(path, of, owner)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(shared, 0o755), os.Chown(shared, owner, owner)); err != nil {
		t.Fatal(err)
	}
	b := s.createBox(t, func(spec *engine.Spec) {
		spec.Owner.HostUID, spec.Owner.HostGID = 0, 0
		spec.Mounts = append(spec.Mounts, engine.Mount{Source: shared, Destination: "/workspace"})
	})
	if got := b.runScript("stat -c %u:%g /workspace /workspace/own"); got != "1000:1000\n1000:1000" {
		t.Errorf("the owner's inside: %q", got)
	}
	b.runScript("cd /workspace && echo after > own && mkdir dir && echo new > dir/new && ln -s own link && mv dir/new dir/newer")
	for _, name := range []string{"own", "dir", "dir/newer", "link"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(shared, name), &st); err != nil || st.Uid != owner || st.Gid != owner {
			t.Errorf("%s belongs to %d:%d on the host (%v)", name, st.Uid, st.Gid, err)
		}
	}
	for _, write := range []string{"echo x > theirs", "echo x > root", "chmod 777 theirs", "chmod 777 root", "touch theirs"} {
		if r := b.execAs("", "/bin/sh", "-c", "cd /workspace && "+write); r.exit.Code == 0 {
			t.Errorf("%q succeeded on a third one's file", write)
		}
	}
}
